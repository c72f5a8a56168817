// The federation as a picture: guests on the left, hosts in the middle, the owner on the right.

import { mark, oldest, parties, say, span, svg } from "./dom.js";

const HEIGHT = 46, APART = 14, TOP = 26;

export class Picture {
  constructor(place) {
    this.place = place;
    this.shape = "";
    new ResizeObserver(() => this.last && this.show(...this.last)).observe(place);
  }

  show(status, since) {
    this.last = [status, since];
    const width = Math.floor(this.place.clientWidth);
    if (!width) return;
    const everybody = parties(status);
    const shape = JSON.stringify([width, everybody.map((party) => [party.name, party.role])]);
    if (shape !== this.shape) this.build(everybody, width);
    this.shape = shape;
    for (const party of everybody) this.update(party, since[party.name]);
    for (const link of this.links) {
      const up = this.up[link.from] && this.up[link.to];
      const age = status.guests[link.from]?.hosts?.[link.to]?.age_s ?? status.hosts[link.from]?.age_s;
      mark(link.path, "class", `link ${!up ? "down" : age !== null && age !== undefined && age < 10 ? "fresh" : "older"}`);
    }
    const down = everybody.filter((party) => !party.up).map((party) => party.name);
    const count = (role) => everybody.filter((party) => party.role === role).length;
    const whole = `${count("guest")} guests push to ${count("host")} hosts, and hosts answer the owner. `;
    mark(this.root, "aria-label", whole + (down.length ? `Down: ${down.join(", ")}.` : "All are up."));
  }

  build(everybody, width) {
    const roles = ["guest", "host", "owner"].map((role) => everybody.filter((party) => party.role === role));
    const most = Math.max(...roles.map((members) => members.length));
    const box = Math.min(178, Math.floor((width - 2 * Math.max(26, width * 0.09)) / 3));
    const height = TOP + most * (HEIGHT + APART);
    this.root = svg("svg", { role: "img", height, viewBox: `0 0 ${width} ${height}` });
    this.nodes = {}; this.links = []; this.up = {};
    const at = {};
    roles.forEach((members, column) => {
      const x = [0, (width - box) / 2, width - box][column];
      const title = ["Guests", "Hosts", "Owner"][column];
      this.root.append(svg("text", { class: "column", x: x + box / 2, y: 12, "text-anchor": "middle" }, title));
      members.forEach((party, row) => {
        const free = height - TOP - members.length * (HEIGHT + APART) + APART;
        at[party.name] = { x, y: TOP + free / 2 + row * (HEIGHT + APART) - APART / 2, box };
      });
    });
    for (const guest of roles[0]) for (const host of roles[1]) this.join(guest.name, host.name, at);
    for (const host of roles[1]) this.join(host.name, roles[2][0].name, at);
    for (const party of everybody) this.node(party, at[party.name]);
    this.place.replaceChildren(this.root);
  }

  join(from, to, at) {
    const [a, b] = [at[from], at[to]];
    const x1 = a.x + a.box, y1 = a.y + HEIGHT / 2, x2 = b.x, y2 = b.y + HEIGHT / 2, bend = (x2 - x1) / 2;
    const path = svg("path", { class: "link older", d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` });
    this.links.push({ from, to, path });
    this.root.append(path);
  }

  node(party, { x, y, box }) {
    const narrow = box < 120; // a phone: the sign stands beside the state, so that the name has the whole width
    const left = narrow ? 8 : 38;
    const fits = Math.floor((box - left - 4) / (narrow ? 6.9 : 7.6));
    const name = party.name.length > fits ? `${party.name.slice(0, fits - 1)}…` : party.name;
    const sign = svg("path", { class: "sign" });
    const about = svg("text", { class: "about", x: narrow ? 24 : left, y: 35 });
    const place = narrow ? "translate(14 31) scale(.66)" : "translate(20 23)";
    const disc = svg("g", { transform: place }, svg("circle", { class: "disc", r: 9 }), sign);
    const node = svg("g", { class: "node", "data-party": party.name, transform: `translate(${x} ${y})` },
      svg("title", {}, party.name), svg("rect", { width: box, height: HEIGHT, rx: 11 }), disc,
      svg("text", { class: narrow ? "name narrow" : "name", x: left, y: 20 }, name), about);
    this.nodes[party.name] = { node, sign, about, fits: Math.floor((box - (narrow ? 24 : left) - 4) / 6) };
    this.root.append(node);
  }

  update(party, downSince) {
    const { node, sign, about, fits } = this.nodes[party.name];
    this.up[party.name] = party.up;
    mark(node, "class", party.up ? "node" : "node down");
    mark(sign, "d", party.up ? "M-4 0 -1 3.5 4.5 -3.5" : "M-3.5 -3.5 3.5 3.5M3.5 -3.5 -3.5 3.5");
    const age = party.role === "guest" ? oldest(party)?.age : party.age_s;
    const aged = age === null || age === undefined ? "" : `, ${span(age)}`;
    const text = party.up ? `${party.state ?? "up"}${aged}` : downSince === undefined ? "down" : `down ${span(downSince)}`;
    say(about, text.length > fits ? (party.up ? party.state ?? "up" : "down") : text);
  }
}
