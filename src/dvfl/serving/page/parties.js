// The parties as a table; on a small screen the same rows are cards, and keep the roles of a table's.

import { bytes, figure, html, mark, oldest, parties, say, span, svg } from "./dom.js";

const LABELS = ["Role", "State", "Progress", "Loss", "Register age", "Restarts", "Sent / received"];

export class Parties {
  constructor(body) {
    this.body = body;
    this.rows = new Map();
  }

  show(status) {
    const everybody = parties(status);
    const names = everybody.map((party) => `${party.role}/${party.name}`);
    if (names.join() !== [...this.rows.keys()].join()) {
      this.rows = new Map(everybody.map((party, i) => [names[i], row(party)]));
      this.body.replaceChildren(...[...this.rows.values()].map((one) => one.row));
    }
    everybody.forEach((party, i) => update(this.rows.get(names[i]), party));
  }
}

function row(party) {
  const sign = svg("path", { class: "sign" });
  const disc = svg("circle", { cx: 8, cy: 8, r: 7, class: "disc" });
  const state = html("span");
  const fill = html("span");
  const far = html("span");
  const bar = html("span", { class: "progress", "aria-hidden": "true" }, fill);
  const contents = [
    [party.role],
    [html("span", { class: "state" }, svg("svg", { width: 16, height: 16, class: "node", "aria-hidden": "true" }, disc, sign), state)],
    [far, bar],
    [], [], [], [],
  ];
  const cells = contents.map((content, i) => html("td", { role: "cell", "data-label": LABELS[i] }, ...content));
  return { row: html("tr", { role: "row" }, html("th", { role: "rowheader", scope: "row" }, party.name), ...cells), sign, disc, state, fill, far, bar, cells };
}

function update(shown, party) {
  mark(shown.row, "class", party.up ? "up" : "down");
  mark(shown.sign.parentNode, "class", party.up ? "node" : "node down");
  mark(shown.sign, "d", party.up ? "M5 8 7.3 10.7 11.3 5.5" : "M5.3 5.3 10.7 10.7M10.7 5.3 5.3 10.7");
  say(shown.state, party.up ? `up, ${party.state ?? "state unknown"}` : `down${party.state ? `, was ${party.state}` : ""}`);
  const done = party.role === "host" ? party.steps : party.epoch;
  const total = party.role === "host" ? party.budget : party.epochs;
  const unit = party.role === "host" ? "step" : "epoch";
  say(shown.far, done === null || done === undefined ? "–" : total ? `${unit} ${done} of ${total}` : `${unit} ${done}`);
  shown.bar.hidden = !total;
  if (total) shown.fill.style.width = `${Math.min(100, (100 * (done ?? 0)) / total)}%`;
  say(shown.cells[3], figure(party.loss));
  const found = party.role === "guest" ? oldest(party) : null;
  const heard = party.role === "host" && party.age_s !== null ? `heard ${span(party.age_s)} ago` : "–";
  say(shown.cells[4], found ? `${span(found.age)} at ${found.host}` : heard);
  say(shown.cells[5], `${party.restarts ?? "–"}`);
  const traffic = party.bytes_sent === undefined ? "–" : `${bytes(party.bytes_sent)} / ${bytes(party.bytes_received)}`;
  say(shown.cells[6], traffic);
}
