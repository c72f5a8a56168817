// The form: an id in, its prediction and whom it rests on out.

import { byId, figure, html, span } from "./dom.js";
import { headers } from "./feed.js";

export function listen() {
  const form = byId("asking"), button = form.querySelector("button");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      byId("answer").replaceChildren(...(await asked(byId("id").value, Number(byId("deadline").value))));
    } finally {
      button.disabled = false;
    }
  });
}

async function asked(id, deadline) {
  const request = { method: "POST", headers: { "content-type": "application/json", ...headers() }, body: JSON.stringify({ ids: [id], deadline_s: deadline }) };
  try {
    const response = await fetch("/v1/predict", request);
    const body = await response.json();
    return response.ok ? shown(body.predictions[0]) : [problem(body.error)];
  } catch {
    return [problem("The server is not reached.")];
  }
}

function problem(text) {
  return html("p", { class: "problem", role: "alert" }, text);
}

function shown(answer) {
  if (!answer.known) return [problem(`The owner knows no id “${answer.id}”.`)];
  if (!answer.answered) return [problem("Nobody answered in time that this could rest on."), ...contributions(answer)];
  const what = answer.class ?? figure(answer.value);
  const sure = answer.confidence === null ? "" : `Id ${answer.id}, confidence ${percent(answer.confidence)}`;
  return [html("p", { class: "class" }, what), html("p", { class: "quiet" }, sure), rests(answer), ...probabilities(answer), ...contributions(answer)];
}

function rests(answer) {
  const guests = Object.values(answer.guests), hosts = Object.values(answer.hosts);
  const fresh = guests.filter((one) => one.state === "fresh").length, up = hosts.filter(Boolean).length;
  const counts = `${fresh} of ${guests.length} guests fresh, ${up} of ${hosts.length} hosts`;
  const word = html("b", {}, answer.degraded ? "Degraded" : "Whole");
  return html("p", { class: answer.degraded ? "rests degraded" : "rests" }, word, html("span", {}, `rests on ${counts}`));
}

function probabilities(answer) {
  const entries = Object.entries(answer.probabilities).sort((a, b) => b[1] - a[1]);
  if (!entries.length) return [];
  const bars = entries.map(([name, share]) => {
    const fill = html("span", { class: "fill" });
    fill.style.width = `${100 * share}%`;
    return html("li", {}, html("span", { class: "name", title: name }, name), html("span", { class: "track", "aria-hidden": "true" }, fill), html("span", { class: "share" }, percent(share)));
  });
  return [html("h3", {}, "Probabilities"), html("ul", { class: "bars", tabindex: bars.length > 9 ? "0" : "-1" }, ...bars)];
}

function contributions(answer) {
  const guests = Object.entries(answer.guests).map(([name, part]) => {
    const how = part.suspected ? "left out, looked corrupt" : part.state === "cached" ? `cached, ${span(part.age_s)} old` : part.state;
    return html("li", { class: part.state }, `${name}: ${how}`);
  });
  const hosts = Object.entries(answer.hosts).map(([name, up]) => html("li", { class: up ? "fresh" : "absent" }, `${name}: ${up ? "counted" : "missing"}`));
  return [html("h3", {}, "Guests"), html("ul", { class: "chips" }, ...guests), html("h3", {}, "Hosts"), html("ul", { class: "chips" }, ...hosts)];
}

function percent(share) {
  return `${(100 * share).toFixed(share > 0.9995 || share < 0.0005 ? 0 : 1)} %`;
}
