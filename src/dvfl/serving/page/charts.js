// Losses and accuracy as they move: four small charts.

import { clock, figure, html, mark, parties, say, svg } from "./dom.js";

const HEIGHT = 130, LEFT = 46, RIGHT = 6, TOP = 8, BOTTOM = 18;
const DASHES = ["", "7 3", "2 3", "9 3 2 3", "4 4", "1 4"];
const POINTS = 240;
const KINDS = [["guest", "Loss of guests"], ["host", "Loss of hosts"], ["owner", "Loss of the owner"], ["accuracy", "Test accuracy, %"]];

export class Charts {
  constructor(place) {
    this.charts = KINDS.map(([kind, title]) => new Chart(kind, title));
    place.replaceChildren(...this.charts.map((chart) => chart.root));
    this.curves = {};
    new ResizeObserver(() => this.draw()).observe(place);
  }

  begin(curves) {
    this.curves = curves;
  }

  show(status, at) {
    const everybody = parties(status);
    for (const party of everybody) this.note(party.name, at, party.loss);
    this.note("accuracy", at, status.accuracy);
    this.members = { accuracy: ["accuracy"] };
    for (const kind of ["guest", "host", "owner"]) {
      this.members[kind] = everybody.filter((party) => party.role === kind).map((party) => party.name);
    }
    this.draw();
  }

  note(name, at, value) {
    if (value === null || value === undefined) return;
    const points = (this.curves[name] ??= []);
    if (points.length && (points.at(-1)[1] === value || points.at(-1)[0] >= at)) return;
    points.push([at, value]);
    if (points.length > POINTS) this.curves[name] = points.filter((_, i) => i % 2 === 0 || i === points.length - 1);
  }

  draw() {
    if (!this.members) return;
    for (const chart of this.charts) chart.draw(this.members[chart.kind], this.curves);
  }
}

class Chart {
  constructor(kind, title) {
    this.kind = kind;
    this.title = title;
    this.svg = svg("svg", { role: "img" });
    this.legend = html("ul", { class: "legend" }); // keeps its place while it is empty
    this.root = html("div", { class: "chart" }, html("h3", {}, title), this.svg, this.legend);
  }

  draw(names, curves) {
    const width = Math.floor(this.svg.clientWidth);
    const known = names.filter((name) => curves[name]?.length);
    const points = known.flatMap((name) => curves[name]);
    const state = JSON.stringify([width, names, points.length, points.at(-1)]);
    if (!width || state === this.state) return;
    this.state = state;
    mark(this.svg, "viewBox", `0 0 ${width} ${HEIGHT}`);
    if (!points.length) {
      const text = this.kind === "accuracy" ? "after training" : "nothing yet";
      this.svg.replaceChildren(svg("text", { x: width / 2, y: HEIGHT / 2, "text-anchor": "middle" }, text));
      mark(this.svg, "aria-label", `${this.title}: ${text}`);
      this.legend.replaceChildren();
      return;
    }
    const times = points.map((point) => point[0]), values = points.map((point) => point[1]);
    const first = Math.min(...times), last = Math.max(...times);
    let low = Math.min(...values), high = Math.max(...values);
    const room = high - low || Math.abs(high) * 0.1 || 1;
    const losses = this.kind !== "accuracy";
    low = losses && low >= 0 ? 0 : low - 0.08 * room;
    high += 0.08 * room;
    if (!losses && high > 100 && Math.max(...values) <= 100) high = 100;
    const x = (time) => (last === first ? (LEFT + width - RIGHT) / 2 : LEFT + ((time - first) / (last - first)) * (width - LEFT - RIGHT));
    const y = (value) => TOP + ((high - value) / (high - low)) * (HEIGHT - TOP - BOTTOM);
    const ends = [[high, y(high)], [low, y(low)]];
    const rules = ends.flatMap(([value, at]) => [
      svg("path", { class: "axis", d: `M${LEFT} ${at}H${width - RIGHT}` }),
      svg("text", { x: LEFT - 6, y: at + 3.5, "text-anchor": "end" }, figure(value)),
    ]);
    const whens = last === first
      ? [svg("text", { x: x(first), y: HEIGHT - 4, "text-anchor": "middle" }, `since ${clock(first)}`)]
      : [svg("text", { x: LEFT, y: HEIGHT - 4 }, clock(first)), svg("text", { x: width - RIGHT, y: HEIGHT - 4, "text-anchor": "end" }, clock(last))];
    if (points.length === 1 && !losses) {
      const alone = svg("text", { class: "alone", x: width / 2, y: HEIGHT / 2, "text-anchor": "middle" }, figure(values[0]));
      this.svg.replaceChildren(alone, svg("text", { x: width / 2, y: HEIGHT / 2 + 24, "text-anchor": "middle" }, `since ${clock(first)}`));
      mark(this.svg, "aria-label", `${this.title}: ${figure(values[0])}`);
      this.legend.replaceChildren();
      return;
    }
    const lines = known.map((name) => this.line(curves[name], names.indexOf(name), x, y, last));
    this.svg.replaceChildren(...rules, ...whens, ...lines);
    mark(this.svg, "aria-label", `${this.title}. ${known.map((name) => `${name} ${figure(curves[name].at(-1)[1])}`).join(", ")}`);
    this.label(names, curves);
  }

  line(points, number, x, y, last) {
    const style = { class: `c${number % 6}`, "stroke-dasharray": DASHES[number % 6] };
    if (points.length === 1) {
      const from = x(points[0][0]); // one value is a short dash at least, and lasts until now
      return svg("path", { ...style, d: `M${from - 8} ${y(points[0][1])}H${Math.max(from + 8, x(last))}` });
    }
    const steps = points.map(([time, value]) => `${x(time).toFixed(1)} ${y(value).toFixed(1)}`);
    return svg("path", { ...style, d: `M${steps.join("L")}H${x(last).toFixed(1)}` });
  }

  label(names, curves) {
    if (this.legend.children.length !== names.length) {
      this.legend.replaceChildren(...names.map((name, number) => {
        const sample = svg("path", { class: `c${number % 6}`, d: "M1 5H21", "stroke-dasharray": DASHES[number % 6], "stroke-width": 2 });
        const key = svg("svg", { width: 22, height: 10, "aria-hidden": "true" }, sample);
        key.style.width = "22px"; key.style.height = "10px";
        return html("li", {}, key, html("span"));
      }));
    }
    names.forEach((name, number) => {
      const shown = this.kind === "accuracy" ? "" : `${name} `;
      say(this.legend.children[number].lastChild, `${shown}${figure(curves[name]?.at(-1)[1])}`);
    });
  }
}
