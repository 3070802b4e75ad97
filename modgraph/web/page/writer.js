// A language model writes on: word by word behind a text, each in the colour of its module.

import { BundleError, hasPieces, wordsReader } from "../modgraph_web/modgraph.js";
import { colourOf } from "./colours.js";

const { element } = globalThis;
const MOST = 500; // words at once

// Whether a bundle continues the words of an input.
export function canContinue(bundle, port) {
  return bundle.stepwise?.tokens === port.name && bundle.stepwise.logits in bundle.outputs;
}

export class Writer {
  // `read` gives the ids of the text so far, or null.
  constructor(bundle, port, read) {
    Object.assign(this, { bundle, read, port, pressed: 0, isStopped: true, isRunning: false });
    const number = (text, options) => element("input", { type: "number", "aria-label": text, ...options });
    this.count = number("words to write", { value: 32, min: 1, max: MOST, step: 1 });
    this.temperature = number("temperature", { value: 0.7, min: 0, max: 5, step: 0.1 });
    this.routes = Object.keys(bundle.stepwise.choices);
    this.route = element("select", { "aria-label": "route whose modules colour the words", onchange: () => this.colourAll() },
      this.routes.map((route) => element("option", { value: route }, route)));
    this.route.value = this.routes.at(-1) ?? "";
    this.route.hidden = this.routes.length < 2;
    this.button = element("button", { type: "button", "data-do": "write", onclick: () => (this.isRunning ? this.stop() : this.write()) }, "Write on");
    this.status = element("p", { class: "muted", role: "status" });
    this.words = element("p", { class: hasPieces(bundle, port.name) ? "words pieces written" : "words written", "aria-label": "what the model writes", "aria-live": "off" });
    this.place = element("div", { class: "writer" },
      element("div", { class: "controls" }, this.button, element("label", {}, "words", this.count), element("label", {}, "temperature", this.temperature), this.route),
      this.words, this.status);
  }
  stop() {
    this.isStopped = true;
  }
  // Write behind the text as it is now, with samples of their own at each press.
  async write() {
    const ids = this.read();
    if (!ids?.length) return this.report("type some words first");
    Object.assign(this, { isRunning: true, isStopped: false });
    this.button.textContent = "Stop";
    this.words.replaceChildren();
    this.report("");
    const began = performance.now();
    try {
      const count = await this.stream(ids);
      this.report(`${count} words, ${Math.round((1000 * count) / (performance.now() - began))} a second`);
    } catch (error) {
      if (!(error instanceof BundleError || error instanceof RangeError)) throw error;
      this.report(error.message);
    } finally {
      Object.assign(this, { isRunning: false, isStopped: true });
      this.button.textContent = "Write on";
    }
  }
  async stream(ids) {
    const longest = this.bundle.stepwise.longest ?? Infinity, room = longest - ids.length + 1;
    const options = { tokens: Math.max(1, Math.min(Number(this.count.value) || 1, MOST, room)), temperature: Number(this.temperature.value), seed: this.pressed++, routing: true };
    const textOf = wordsReader(this.bundle, this.port.name);
    ids.forEach((id) => textOf(Number(id)));
    let waiting = null, count = 0;
    for await (const { tokens: [id], modules } of this.bundle.stream([Array.from(ids, Number)], options)) {
      if (waiting) this.colour(waiting, modules[0]);
      if (this.isStopped || id === null) break;
      waiting = element("span", { class: "word" });
      waiting.append(textOf(id)); // empty for a piece that completes no letter
      this.words.append(waiting);
      count++;
      await new Promise((done) => setTimeout(done)); // the page is rendered, and Stop can be pressed
    }
    return count;
  }
  // The module of a word is known when the word has been read.
  colour(word, modules = {}) {
    word.modules = modules;
    const route = this.route.value, [module] = modules[route] ?? [];
    if (module === undefined) return;
    const size = this.bundle.routing[this.bundle.stepwise.choices[route]].shape.at(-1), colour = colourOf(module, size);
    word.title = `${word.firstChild.data}: module ${modules[route].join(", ")}`;
    word.dataset.module = module;
    word.replaceChildren(word.firstChild, element("sub", {}, modules[route].join(",")));
    word.style.borderBottomColor = colour;
    word.style.background = `color-mix(in srgb, ${colour} 22%, transparent)`;
  }
  colourAll() {
    for (const word of this.words.children) this.colour(word, word.modules);
  }
  report(text) {
    this.status.textContent = text;
  }
}
