// The page: loads the model, hands what its inputs hold to it, and what it makes of them to outputs, routes and graph.

import { Bundle, BundleError } from "../modgraph_web/modgraph.js";
import { unpacked } from "./arrays.js";
import { exampleStrip } from "./examples.js";
import { GraphView } from "./graph_view.js";
import { panelsOf } from "./inputs.js";
import { fetched, json } from "./load.js";
import { Outputs } from "./outputs.js";
import { Routes } from "./routes.js";
import { theme } from "./theme.js";

const { element } = globalThis;
const place = (name) => document.querySelector(name);

class App {
  constructor(record, bundle, examples) {
    Object.assign(this, { record, bundle, examples, example: null, running: false, again: false });
    this.graph = new GraphView(record, (route, module) => this.routes.select(route, module));
    this.outputs = new Outputs(bundle, record, place(".outputs"));
    this.routes = new Routes(bundle, record, place(".routes"), {
      pick: (route, module) => this.graph.select(route, module),
      position: (axis, at) => this.outputs.position(axis, at),
    });
    this.panels = panelsOf(bundle, () => this.changed());
    const strip = exampleStrip(bundle, examples, (example) => this.take(example));
    place(".inputs").replaceChildren(...(strip ? [strip.place] : []), ...this.panels.map((panel) => panel.place));
    this.strip = strip;
    this.last = null;
  }
  // An input was changed by hand: it is no example any more.
  changed() {
    this.example = null;
    this.strip?.mark(null);
    return this.compute();
  }
  take(example) {
    this.example = example;
    this.strip?.mark(example);
    for (const panel of this.panels) panel.set(unpacked(example.inputs[panel.port.name]));
    return this.compute();
  }
  // One run at a time; what has changed meanwhile is computed next.
  async compute() {
    this.again = true;
    if (this.running) return;
    this.running = true;
    while (this.again) {
      this.again = false;
      await this.once().catch((error) => this.outputs.refuse(error));
    }
    this.running = false;
  }
  async once() {
    const example = this.example, inputs = {};
    for (const panel of this.panels) inputs[panel.port.name] = panel.value();
    if (Object.values(inputs).some((value) => value === null)) return this.outputs.empty();
    if (example) for (const [name, packed] of Object.entries(example.inputs)) inputs[name] ??= unpacked(packed);
    const began = performance.now(), values = await this.bundle.run(inputs, { routing: true });
    this.last = { inputs, outputs: values, milliseconds: performance.now() - began, runs: (this.last?.runs ?? 0) + 1 };
    this.outputs.show(this.last, example);
    this.graph.show(this.routes.show(this.last));
    document.body.dataset.runs = this.last.runs;
  }
}

function fault(error) {
  const wayOut = "Load the page again; if that does not help, export and copy the folder again.";
  const reason = error instanceof BundleError ? error.message : `${error.name}: ${error.message}`;
  place(".fault").replaceChildren(element("strong", {}, "The model cannot be run here. "), `${reason}. `, wayOut);
  place(".fault").hidden = false;
  place(".bar progress").hidden = true;
  place(".status").textContent = "not loaded";
  place("main").hidden = true;
}

async function begin() {
  theme(place("[data-do=theme]"));
  const bar = place(".bar progress"), status = place(".status");
  const report = (text, part) => {
    status.textContent = text;
    bar.hidden = part === undefined;
    if (part) bar.value = part;
    else bar.removeAttribute("value");
  };
  report("loading the model", 0);
  const [record, examples, content] = await Promise.all([
    json("page.json"), json("examples.json"), fetched("model.onnx", (part) => report("loading the model", part)),
  ]);
  report("starting ONNX Runtime", 0);
  const threads = globalThis.crossOriginIsolated ? Math.min(4, navigator.hardwareConcurrency || 1) : 1;
  const bundle = await Bundle.load(content, { threads });
  const app = new App(record, bundle, examples);
  report(`runs in this browser, on ${threads === 1 ? "one thread" : `${threads} threads`}`);
  globalThis.modgraph = app;
  await (examples.examples.length ? app.take(examples.examples[0]) : app.compute());
}

begin().catch(fault);
