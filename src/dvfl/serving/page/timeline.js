// Who was down when, since the server began to watch.

import { clock, html, mark, parties, say, span, svg } from "./dom.js";

const LANE = 24, TOP = 4, BOTTOM = 18;

export class Timeline {
  constructor({ picture, list, since, summary }) {
    Object.assign(this, { picture, list, since, summary });
    new ResizeObserver(() => this.last && this.show(...this.last)).observe(picture);
  }

  show(status, faults, began, now) {
    this.last = [status, faults, began, now];
    say(this.since, `since ${clock(began)}`);
    say(this.summary, faults.length ? `As a list (${faults.length})` : "As a list (none)");
    this.draw(parties(status).map((party) => party.name), faults, began, now);
    const state = JSON.stringify(faults);
    if (state !== this.state) this.enumerate(faults);
    this.state = state;
  }

  draw(names, faults, began, now) {
    const width = Math.floor(this.picture.clientWidth);
    if (!width) return;
    const left = Math.min(150, Math.max(70, width * 0.22)), right = width - 4;
    const fits = Math.floor((left - 8) / 7);
    const height = TOP + names.length * LANE + BOTTOM;
    const x = (time) => left + (Math.max(0, time - began) / Math.max(1, now - began)) * (right - left);
    const parts = names.flatMap((name, row) => {
      const y = TOP + row * LANE + LANE / 2;
      const bars = faults.filter((fault) => fault.party === name).map((fault) => {
        const from = x(fault.since_s), to = x(fault.until_s ?? now);
        return svg("rect", { class: "fault", x: from, y: y - 7, width: Math.max(3, to - from), height: 14, rx: 3 }, svg("title", {}, text(fault)));
      });
      const short = name.length > fits ? `${name.slice(0, fits - 1)}…` : name;
      return [svg("text", { x: 0, y: y + 4 }, short), svg("path", { class: "lane up", d: `M${left} ${y}H${right}` }), ...bars];
    });
    const foot = height - 4;
    const root = svg("svg", { role: "img", height, viewBox: `0 0 ${width} ${height}` }, ...parts,
      svg("text", { class: "quiet", x: left, y: foot }, clock(began)), svg("text", { class: "quiet", x: right, y: foot, "text-anchor": "end" }, "now"));
    const open = faults.filter((fault) => fault.until_s === null).map((fault) => fault.party);
    mark(root, "aria-label", `${faults.length} faults since ${clock(began)}. ${open.length ? `Down now: ${open.join(", ")}.` : "Nobody is down now."}`);
    this.picture.replaceChildren(root);
  }

  enumerate(faults) {
    const items = [...faults].reverse().slice(0, 100).map((fault) => html("li", {}, text(fault)));
    this.list.replaceChildren(...(items.length ? items : [html("li", { class: "quiet" }, "Nobody has been down.")]));
  }
}

function text(fault) {
  if (fault.until_s === null) return `${fault.party} is down since ${clock(fault.since_s)}`;
  return `${fault.party} was down from ${clock(fault.since_s)} to ${clock(fault.until_s)}, ${span(fault.until_s - fault.since_s)}`;
}
