// The tabs of results: what each asks the worker, and how it draws the answer.

import { CostTable } from "./costs.js";
import { GraphView } from "./graph_view.js";
import { languageOf } from "./language.js";
import { RunView } from "./run_view.js";
import { TextView, colourLines } from "./texts.js";
import { Tour } from "./tour.js";

const { element } = globalThis;
const find = (id) => document.querySelector(`#view-${id}`);

export function listViews(app) {
  return [graphView(app), costView(app), textView(app), differenceView(app), runView(app), helpView(app), tourView(app)];
}

function graphView(app) {
  const view = new GraphView(find("graph"), (...line) => app.toLine(...line));
  return { id: "graph", label: "Graph", load: () => app.ask("graph"), draw: (pane) => view.draw([pane]), view };
}

function costView(app) {
  const table = new CostTable(find("costs"));
  const load = async () => {
    const { pinned } = app.work;
    if (pinned) pinned.cost ??= (await app.ask("cost", { text: pinned.text, parameters: pinned.parameters })).cost; // of a link
    return { ...(await app.ask("cost")), before: pinned?.cost };
  };
  return { id: "costs", label: "Costs", load, draw: ({ cost, before }) => table.draw(cost, before) };
}

function textView(app) {
  let after = "", known = "";
  const choice = element("select", { "aria-label": "the graph after a pass", onchange: () => ((after = choice.value), app.results.changed(app.results.reason)) });
  const option = (name) => element("option", { value: name, selected: name === after }, name || "as written");
  find("text").append(element("div", { class: "tools" }, element("label", {}, "after ", choice)));
  const printed = new TextView(find("text"), languageOf(app.words, "graph"), "the graph as text");
  const draw = ({ text, passes }) => {
    if (known !== (known = passes.join())) choice.replaceChildren(...["", ...passes].map(option));
    printed.draw(text);
  };
  return { id: "text", label: "Text", load: () => app.ask("show", after ? { after } : {}), draw };
}

function differenceView(app) {
  const place = find("difference"), hint = element("p", { class: "prose muted" }, "Pin a state; what you change afterwards is compared with it here."), text = element("div", { class: "changes", tabindex: "0", "aria-label": "what differs" });
  const graphs = place.querySelector(".two"), view = new GraphView(place, (...line) => app.toLine(...line));
  place.prepend(hint, text);
  const load = async () => app.work.pinned && app.ask("diff", { before: { text: app.work.pinned.text, parameters: app.work.pinned.parameters } });
  const draw = async (found) => {
    hint.hidden = Boolean(found);
    text.hidden = !found;
    graphs.hidden = !found?.different;
    text.replaceChildren(...(found ? [colourLines(found.text)] : []));
    if (!found?.different) return;
    await view.draw(found.panes);
    view.panes.forEach((pane) => pane.showFirstMark());
  };
  return { id: "difference", label: "Difference", load, draw };
}

function runView(app) {
  const place = find("run"), view = new RunView(place, app.entries.filter(({ run }) => run), (entry) => app.take(entry));
  const load = async () => (!view.choice ? {} : app.hasErrors(app.work.spec) ? { reason: "The text has mistakes." } : app.ask("program"));
  place.addEventListener("pick", () => app.results.changed(app.results.reason));
  return { id: "run", label: "Run", load, draw: (found) => view.draw(found), isIndependent: true, view };
}

function helpView(app) {
  const place = find("help"), text = element("pre", { class: "prose" });
  const input = element("input", { type: "search", "aria-label": "a word of the language, or the code of a message", placeholder: "linear, top_k, MG201 …" });
  const ask = (event) => {
    event.preventDefault();
    return app.explain(input.value.trim());
  };
  place.append(element("form", { class: "tools", role: "search", onsubmit: ask }, input, element("button", { type: "submit" }, "Explain")), text);
  const load = () => (app.word ? app.ask("explain", { name: app.word }) : { text: "Put the cursor on a word, or write one above." });
  const draw = (found) => {
    if (document.activeElement !== input) input.value = app.word;
    text.textContent = found.text;
  };
  return { id: "help", label: "Help", load, draw, isIndependent: true };
}

function tourView(app) {
  const tour = new Tour(find("tour"), app, app.steps);
  return { id: "tour", label: "Tour", load: () => tour.load(), draw: (found) => tour.draw(found), isIndependent: true, tour };
}
