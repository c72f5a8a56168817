// Puts what the server tells into the parts of the page.

import { Charts } from "./charts.js";
import { listen } from "./asking.js";
import { byId, mark, oldest, parties, say, span } from "./dom.js";
import { follow, forget, keep } from "./feed.js";
import { Parties } from "./parties.js";
import { Picture } from "./picture.js";
import { Timeline } from "./timeline.js";

const picture = new Picture(byId("picture"));
const table = new Parties(byId("parties"));
const charts = new Charts(byId("charts"));
const timeline = new Timeline({ picture: byId("timeline"), list: byId("faults"), since: byId("faults-since"), summary: byId("faults-summary") });
let began = 0, before = null;

function overall(kind, text) {
  mark(byId("overall"), "class", `pill ${kind}`);
  say(byId("overall-text"), text);
}

function facts(status, everybody) {
  const up = everybody.filter((party) => party.up).length;
  const ages = Object.values(status.guests).map((guest) => oldest(guest)?.age).filter((age) => age !== undefined);
  say(byId("fact-phase"), status.phase);
  say(byId("fact-up"), `${up} of ${everybody.length}`);
  say(byId("fact-oldest"), ages.length ? span(Math.max(...ages)) : "–");
  say(byId("fact-accuracy"), status.accuracy === null || status.accuracy === undefined ? "–" : `${status.accuracy.toFixed(2)} %`);
  say(byId("fact-ready"), status.ready ? "ready" : "after training");
}

// A screen reader hears what has changed since the last look, and nothing at the first.
function announce(everybody) {
  const now = Object.fromEntries(everybody.map((party) => [party.name, party.up]));
  if (before !== null) {
    const changed = everybody.filter((party) => before[party.name] !== undefined && before[party.name] !== party.up);
    if (changed.length) say(byId("announcements"), changed.map((party) => `${party.name} is ${party.up ? "up again" : "down"}.`).join(" "));
  }
  before = now;
}

function show({ status, faults, seen_s, now_s, trouble }) {
  if (!status) return overall("waiting", trouble ?? "Waiting for the first status");
  byId("main").removeAttribute("aria-busy");
  const everybody = parties(status), down = everybody.filter((party) => !party.up);
  const since = Object.fromEntries(faults.filter((fault) => fault.until_s === null).map((fault) => [fault.party, now_s - fault.since_s]));
  say(byId("federation"), status.federation);
  say(byId("run"), status.run ? `run ${status.run}` : "no run yet");
  facts(status, everybody);
  picture.show(status, since);
  table.show(status);
  charts.show(status, seen_s);
  timeline.show(status, faults, began, now_s);
  announce(everybody);
  const text = down.length === 0 ? "All parties up" : down.length === 1 ? `${down[0].name} is down` : `${down.length} parties down`;
  if (trouble) overall("waiting", `No news for ${span(now_s - seen_s)}`);
  else overall(down.length ? "bad" : "good", text);
  document.title = `${down.length ? `(${down.length} down) ` : ""}${status.federation}`;
}

function asksForToken(why) {
  forget();
  overall("waiting", "A token is needed");
  say(byId("token-why"), why);
  byId("token").hidden = false;
  byId("token-value").focus();
  return new Promise((resume) => {
    byId("token").addEventListener("submit", (event) => {
      event.preventDefault();
      keep(byId("token-value").value.trim());
      byId("token-value").value = "";
      byId("token").hidden = true;
      resume();
    }, { once: true });
  });
}

listen();
follow({
  history: (past) => { began = past.began_s; charts.begin(past.curves); },
  status: show,
  lost: (why) => {
    overall("waiting", `No connection: ${why}`);
    say(byId("announcements"), `No connection: ${why}.`);
  },
  unknown: asksForToken,
});
