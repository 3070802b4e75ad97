// What the model gives: classes as bars, numbers as they are, and all of it exactly.

import { nested, percent, ranked, rows, softmax, unpacked } from "./arrays.js";
import { BundleError } from "../modgraph_web/modgraph.js";

const { element, fill, formatNumber } = globalThis;
const MOST_IN_ORDER = 12, MOST = 10; // classes: so many are listed in their order, of more the most probable
const LINES = 200; // of exact numbers
const QUIET = 500; // milliseconds after which a result is read out

export class Outputs {
  constructor(bundle, record, place) {
    Object.assign(this, { bundle, place, probabilities: new Set(record.probabilities), at: new Map(), charts: new Map(), described: record.charts, last: null });
    this.body = element("div", { class: "each" });
    this.said = element("p", { class: "quiet", "aria-live": "polite" });
    place.replaceChildren(this.body, this.said);
  }
  empty() {
    this.body.replaceChildren(element("p", { class: "panel muted" }, "Draw, type or choose something."));
  }
  // What was put in is nothing that the model takes.
  refuse(error) {
    if (!(error instanceof BundleError || error instanceof SyntaxError)) throw error;
    this.body.replaceChildren(element("p", { class: "panel fault", role: "alert" }, error.message));
  }
  show(last, example) {
    Object.assign(this, { last, example });
    this.draw();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => (this.said.textContent = this.summary.join("; ")), QUIET);
  }
  // Show what comes at a place of an axis.
  position(axis, at) {
    for (const port of Object.values(this.bundle.outputs)) if (port.shape[0] === axis) this.at.set(port.name, at);
    this.draw();
  }
  draw() {
    const focused = this.body.contains(document.activeElement) && document.activeElement.dataset.output;
    const isOpen = Boolean(this.body.querySelector("details[open]"));
    this.summary = [];
    this.body.replaceChildren(...Object.values(this.bundle.outputs).map((port) => this.section(port)), this.exact(isOpen));
    if (focused) this.body.querySelector(`[data-output="${CSS.escape(focused)}"]`)?.focus();
  }
  section(port) {
    const array = this.last.outputs[port.name];
    const content = port.target ? this.classes(port, array) : this.numbers(port, array);
    return element("section", { class: "panel output", "data-name": port.name }, element("h2", {}, port.name), content);
  }
  classes(port, array) {
    const lines = rows(array), at = Math.min(this.at.get(port.name) ?? lines.length - 1, lines.length - 1);
    const values = lines[at], shares = this.probabilities.has(port.name) ? [...values] : softmax(values);
    const name = (place) => port.classes[place] ?? String(place), best = ranked(shares, 1)[0];
    const places = shares.length <= MOST_IN_ORDER ? [...shares.keys()] : ranked(shares, MOST);
    this.summary.push(`${port.name}: ${name(best)}, ${percent(shares[best])}`);
    return [
      lines.length > 1 ? this.slider(port, lines.length, at) : null,
      element("p", { class: "best" }, name(best), element("span", { class: "muted" }, ` ${percent(shares[best])}`), this.truth(port)),
      element("table", { class: "bars" }, element("tbody", {}, places.map((place) => {
        const bar = element("i");
        bar.style.width = `${100 * shares[place]}%`;
        return element("tr", { class: place === best ? "first" : undefined }, element("th", { scope: "row" }, name(place)),
          element("td", {}, element("div", { class: "meter" }, bar)), element("td", { class: "numeric mono" }, percent(shares[place])));
      }))),
    ];
  }
  truth(port) {
    const truth = this.example?.truth[port.name];
    return truth === undefined ? null : element("span", { class: "muted" }, `, labelled ${truth}`);
  }
  slider(port, count, at) {
    const words = this.wordsAlong(port), word = words ? `“${words[at]}”` : String(at);
    const range = element("input", { type: "range", min: 0, max: count - 1, value: at, "data-output": port.name, "aria-label": `${port.shape[0]} of ${port.name}`,
      "aria-valuetext": word, oninput: () => {
        this.at.set(port.name, Number(range.value));
        this.draw();
      } });
    return element("label", { class: "position" }, `at ${port.shape[0]} `, range, ` ${word}`);
  }
  // The words of the input whose axis an output's first is.
  wordsAlong(port) {
    const input = Object.values(this.bundle.inputs).find((each) => this.bundle.manifest.words[each.name] && each.shape[0] === port.shape[0]);
    return input && Array.from(this.last.inputs[input.name].data, (id) => this.bundle.manifest.words[input.name][Number(id)]);
  }
  numbers(port, { data, shape }) {
    if (shape.length === 1) {
      this.summary.push(`${port.name}: ${formatNumber(data[0])}`);
      return element("p", { class: "best" }, formatNumber(data[0]));
    }
    if (shape.length > 2) return element("p", { class: "muted" }, `[${shape.slice(1).join(", ")}], see the exact numbers`);
    if (typeof port.shape[0] === "string") return this.curve(port, data);
    return element("p", { class: "mono" }, Array.from(data.subarray(0, MOST_IN_ORDER), formatNumber).join(", "), data.length > MOST_IN_ORDER ? " …" : "");
  }
  // The values along the first axis of an output.
  curve(port, data) {
    const { curve, config } = this.described;
    if (!this.charts.has(port)) this.charts.set(port, new LiveChart(fill(curve, { axis: port.shape[0] }), config, port.name));
    return this.charts.get(port).show({ series: [{ name: "", points: Array.from(data, (value, at) => (Number.isFinite(value) ? [at, value] : [null, null])) }] });
  }
  exact(isOpen) {
    const text = Object.keys(this.bundle.outputs).map((name) => `${name}\n${written(this.last.outputs[name])}`).join("\n\n");
    const apart = this.example && difference(this.example, this.last.outputs);
    return element("details", { class: "panel", open: isOpen }, element("summary", {}, `Exact numbers, in ${this.last.milliseconds.toFixed(0)} ms`),
      apart ? element("p", { class: "muted" }, `${apart.toExponential(1)} from what ONNX Runtime gives in Python, at most`) : null,
      element("pre", { class: "mono", tabindex: "0" }, text));
  }
}

function written({ data, shape }) {
  const values = nested(data, shape.slice(1)), number = (value) => String(Math.fround(value) === value ? +value.toPrecision(9) : value);
  const line = (row) => (Array.isArray(row) || ArrayBuffer.isView(row) ? Array.from(row, line).join(" ") : number(row));
  const lines = Array.isArray(values) ? values.map(line) : [number(values)];
  return lines.length > LINES ? `${lines.slice(0, LINES).join("\n")}\n…` : lines.join("\n");
}

// The largest difference from what Python computed of an example.
function difference(example, outputs) {
  let most = 0;
  for (const [name, packed] of Object.entries(example.outputs)) {
    const expected = unpacked(packed).data;
    outputs[name].data.forEach((value, at) => (most = Math.max(most, Math.abs(value - expected[at]))));
  }
  return most;
}
