// A bundle: an ONNX model with a manifest that says what goes in and what comes out.

import { largest } from "./arrays.js";
import { BundleError } from "./errors.js";
import { Generator, Sampler } from "./generation.js";
import { damageOf } from "./integrity.js";
import { metadataOf } from "./manifest.js";
import { BATCH, FLOAT, checkAxes, Inputs, Port } from "./ports.js";
import { contentOf, titleOf } from "./source.js";
import { AGAIN, StepFacts } from "./steps.js";

const FORMAT = 1;
const MANIFEST_KEY = "modgraph"; // of the manifest among a model's properties

// An exported model, loaded.
//
// `inputs`, `outputs` and `routing` (what its routers record) are ports by name; `manifest` is all that was written
// about the model. `targets` and `leftOut` are names that arrays for it may have and that it does not take: what it was
// trained on, and what goes with outputs of the model that it leaves out. `stepwise` says how a stepwise bundle takes tokens
// one after another; it is null for others.
export class Bundle {
  #title;
  #session;
  #ort;
  #inputs;

  // A bundle's bytes, or where they are. They are checked against the digest that they end in, before anything else looks
  // at them; `check: false` leaves that out. `ort` is ONNX Runtime, `wasmPaths` where its WebAssembly is, `sha256` a
  // function of bytes. Throws `BundleError`.
  static async load(source, { check = true, ort, wasmPaths, threads, sha256 } = {}) {
    const title = titleOf(source), content = await contentOf(source);
    const damage = check && (await damageOf(content, sha256));
    if (damage) throw new BundleError(`${title} ${damage[0]}`, damage[1]);
    const bundle = new this();
    bundle.#title = title;
    bundle.#ort = ort;
    bundle.#session = await sessionOf(title, content, ort, wasmPaths, threads);
    try {
      bundle.#describe(manifestIn(title, content));
    } catch (error) {
      await bundle.release();
      throw error;
    }
    return bundle;
  }

  #describe(manifest) {
    this.manifest = manifest;
    try {
      const { classes = {}, axes = {}, targets = [], left_out: without = {} } = manifest;
      for (const group of ["inputs", "outputs", "routing"])
        this[group] = byName(required(manifest, group).map((entry) => Port.of(entry, classes)));
      const limits = Object.entries(axes).filter(([, axis]) => "longest" in axis);
      const longest = new Map(limits.map(([axis, known]) => [axis, known.longest]));
      this.stepwise = StepFacts.of(manifest);
      const before = this.stepwise?.inputs ?? {}, after = this.stepwise?.outputs ?? {};
      checkAxes([this.inputs, after].flatMap((ports) => Object.values(ports)), { ...this.outputs, ...this.routing }, longest);
      this.#inputs = new Inputs(this.inputs, longest);
      this.targets = new Set(Array.from(targets instanceof Array ? targets : Object.keys(targets), String));
      namesIn(without, "outputs");
      this.leftOut = new Set([...namesIn(without, "inputs"), ...namesIn(without, "targets")]);
      hold({ ...this.inputs, ...before }, this.#session.inputMetadata);
      hold({ ...this.outputs, ...this.routing, ...after }, this.#session.outputMetadata);
    } catch (error) {
      throw new BundleError(`the manifest of ${this.#title} is damaged: ${error.message}`, "", { cause: error });
    }
  }

  // Outputs by name, {data, shape}, examples first; with `routing`, what the routers record too.
  //
  // Large batches are computed `chunk` examples at a time. A stepwise bundle takes whole sequences, from their first token
  // on. Throws `BundleError` where arrays do not fit.
  async run(inputs = {}, { routing = false, chunk = 1024 } = {}) {
    if (!this.#session) throw new BundleError(`${this.#title} was released`);
    if (!Number.isInteger(chunk) || chunk < 1) throw new BundleError(`chunk must be a whole number from 1, not ${chunk}`);
    const { arrays, lengths } = this.#inputs.fitted(inputs), examples = lengths.get(BATCH);
    const ports = Object.values(routing ? { ...this.outputs, ...this.routing } : this.outputs);
    if (!examples) return valuesBy(ports, (port) => joined([], emptyShape(port, lengths), port));
    const feed = this.#feed(arrays, this.stepwise && this.stepwise.feed(this.stepwise.begin(examples), this.#countNew(arrays, lengths))), parts = [];
    for (let at = 0; at < examples; at += chunk)
      parts.push(await this.#compute(feed.map((each) => rowsOf(each, at, Math.min(chunk, examples - at))), ports));
    return valuesBy(ports, (port) => {
      const tensors = parts.map((part) => part[port.tensor]);
      return joined(tensors.map((tensor) => tensor.data), [examples, ...tensors[0].dims.slice(1)], port);
    });
  }

  // Outputs for new tokens [B, n, …], which follow those of a cache: the step of a sampler of one's own. Gives
  // {outputs, routing, cache}. Without a cache they are the first; without `lengths` every example has all n. `others` are
  // further inputs by name. Throws `BundleError` where the bundle is not stepwise, or something does not fit.
  async step(tokens, { cache, lengths, routing = false, others = {} } = {}) {
    if (!this.#session) throw new BundleError(`${this.#title} was released`);
    const facts = this.stepwise;
    if (!facts) throw new BundleError(`${this.#title} takes no token after another`, AGAIN);
    const own = this.#lengthOfTokens(), named = lengths === undefined || !own ? {} : { [own]: lengths };
    const { arrays, lengths: found } = this.#inputs.fitted({ [facts.tokens]: tokens, ...others, ...named });
    const counted = lengths === undefined || own ? this.#countNew(arrays, found) : [...lengths];
    if (!counted.length || Math.min(...counted) < 1)
      throw new BundleError("each example of a step has at least one new token", "leave out those that have ended");
    const before = cache ?? facts.begin(counted.length), given = Object.values(this.outputs), records = routing ? Object.values(this.routing) : [];
    const results = await this.#compute(this.#feed(arrays, facts.feed(before, counted)), [...given, ...records, ...Object.values(facts.outputs)]);
    const values = (ports) => valuesBy(ports, (port) => joined([results[port.tensor].data], results[port.tensor].dims, port));
    return { outputs: values(given), routing: values(records), cache: facts.follow(before, counted, results) };
  }

  // The next tokens of prompts, lists of ids that may differ in length, as they come: {tokens, modules}, by prompt, with
  // null where one has ended; `modules` with `routing`. Throws `BundleError` and `RangeError`, before the first.
  stream(prompts, { tokens = 64, stop = [], routing = false, ...sampling } = {}) {
    return new Generator(this, this.#title).run(prompts, tokens, new Sampler(sampling), new Set(stop), routing);
  }

  // Continues prompts by up to so many tokens: the new ids of each, as `stream` gives them.
  //
  // A sequence ends before a `stop` token. Temperature 0 takes the most likely token; others are sampled by noise of a
  // `seed`, which is not that of Python.
  async generate(prompts, options = {}) {
    const found = Array.from(prompts, () => []), stop = new Set(options.stop);
    for await (const { tokens } of this.stream(prompts, options))
      tokens.forEach((token, row) => { if (token !== null && !stop.has(token)) found[row].push(token); });
    return found;
  }

  // The input with the number of new tokens of each example, where the model reads it.
  #lengthOfTokens() {
    return Object.values(this.inputs).find((port) => port.along === this.stepwise.axis)?.name;
  }

  #countNew(arrays, lengths) {
    const own = this.#lengthOfTokens();
    return own ? Array.from(arrays[own].data, Number) : Array(lengths.get(BATCH)).fill(lengths.get(this.stepwise.axis));
  }

  // What a model is given: its inputs, and those that follow from earlier steps.
  #feed(arrays, more) {
    return [...Object.entries(arrays).map(([name, array]) => ({ port: this.inputs[name], ...array })), ...(more ?? [])];
  }

  async #compute(given, ports) {
    const feed = Object.create(null);
    for (const { port, data, shape } of given) feed[port.tensor] = new this.#ort.Tensor(port.kind, data, shape);
    try {
      return await this.#session.run(feed, ports.map((port) => port.tensor));
    } catch (error) {
      throw new BundleError(`${this.#title} cannot compute this: ${describe(error)}`, "", { cause: error });
    }
  }

  // Outputs by name; where one distinguishes classes, the most likely class: its name if it has one, else its number.
  //
  // Throws `BundleError` where arrays do not fit.
  async predict(inputs) {
    const outputs = Object.entries(await this.run(inputs));
    return Object.fromEntries(outputs.map(([name, values]) => [name, this.classified(name, values)]));
  }

  // The most likely classes of an output's values; values themselves if it distinguishes no classes.
  classified(output, values) {
    const port = this.outputs[output], shape = values.shape.slice(0, -1), size = values.shape.at(-1);
    if (port.target === null) return values;
    const count = shape.reduce((product, axis) => product * axis, 1);
    const best = Int32Array.from({ length: count }, (_, n) => largest(values.data.subarray(n * size, (n + 1) * size)));
    return { data: port.classes.length === size ? Array.from(best, (n) => port.classes[n]) : best, shape };
  }

  // Gives back the memory that the model takes. Nothing can be computed afterwards.
  async release() {
    const session = this.#session;
    this.#session = null;
    await session?.release();
  }
}

// `threads` bounds those that ONNX Runtime computes with, of all bundles: what the first asks for. Pages that are not
// isolated from others have no shared memory, and so one.
async function sessionOf(title, content, ort, wasmPaths, threads) {
  if (wasmPaths !== undefined) ort.env.wasm.wasmPaths = wasmPaths;
  if (!globalThis.crossOriginIsolated) ort.env.wasm.numThreads = 1;
  else if (threads) ort.env.wasm.numThreads = threads;
  try {
    return await ort.InferenceSession.create(content, {
      executionProviders: ["wasm"], logSeverityLevel: 4,
      extra: { session: { load_model_format: "ONNX" } }, // a model is ONNX: ONNX Runtime would also take its own format
    });
  } catch (error) {
    throw new BundleError(`${title} is no ONNX model that can be loaded: ${describe(error)}`, "", { cause: error });
  }
}

// The names of what an export left out. Throws `TypeError`.
function namesIn(without, kind) {
  const names = without[kind] ?? [];
  if (!Array.isArray(names) || !names.every((name) => typeof name === "string"))
    throw new TypeError("its list of left-out names is invalid");
  return names;
}

// The manifest in a bundle's bytes. Throws `BundleError`.
function manifestIn(title, content) {
  let manifest;
  try {
    const text = metadataOf(content, MANIFEST_KEY);
    if (text === null) throw new BundleError(`${title} is an ONNX model, but not a bundle: it has no manifest`);
    manifest = JSON.parse(text);
  } catch (error) {
    if (error instanceof BundleError) throw error;
    throw new BundleError(`the manifest of ${title} is damaged: it is not JSON`, "", { cause: error });
  }
  const format = manifest?.format ?? null;
  if (format !== FORMAT)
    throw new BundleError(`the manifest of ${title} has format ${JSON.stringify(format)}, but this version reads format ${FORMAT}`,
      "export the model again: modgraph export RUN -o model.onnx");
  return manifest;
}

// The manifest against the model: the same tensors, of the same types. Throws `TypeError`.
function hold(ports, tensors) {
  const byName = new Map(tensors.map((tensor) => [tensor.name, tensor])), expected = Object.values(ports);
  const named = new Set(expected.map((port) => port.tensor));
  if (named.size !== byName.size || [...named].some((name) => !byName.has(name)))
    throw new TypeError(`it names ${listed(Object.keys(ports))}, but the model has ${listed([...byName.keys()])}`);
  for (const port of expected) {
    const { type, shape } = byName.get(port.tensor), inner = shape.slice(1);
    const fits = shape.length === 1 + port.shape.length && type === port.kind;
    if (!fits || inner.some((axis, n) => typeof axis === "number" && typeof port.shape[n] === "number" && axis !== port.shape[n]))
      throw new TypeError(`it says that "${port.name}" is ${port}, unlike the model`);
  }
}

// What ONNX Runtime says, without its codes.
function describe(error) {
  return String(error?.message ?? error).split("\n")[0].replace(/^.*ERROR_MESSAGE: /, "");
}

// The values of an output, one chunk after another. Whole numbers are given in 32 bits, which all programs read:
// they are numbers of modules, classes and tokens.
function joined(chunks, shape, port) {
  const size = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  const data = port.kind === FLOAT ? new Float32Array(size) : new Int32Array(size);
  let at = 0;
  for (const chunk of chunks) {
    data.set(port.kind === FLOAT ? chunk : Int32Array.from(chunk, (value) => inThirtyTwoBits(value, port)), at);
    at += chunk.length;
  }
  return { data, shape };
}

function inThirtyTwoBits(value, port) {
  if (BigInt.asIntN(32, value) !== value) throw new BundleError(`"${port.name}" gives ${value}, which 32 bits do not hold`);
  return Number(value);
}

// What a port gives for no examples.
function emptyShape(port, lengths) {
  return [0, ...port.shape.map((axis) => (typeof axis === "number" ? axis : lengths.get(axis)))];
}

function required(manifest, key) {
  if (!Array.isArray(manifest[key])) throw new TypeError(`it has no list of ${key}`);
  return manifest[key];
}

// Some examples of an array.
function rowsOf({ port, data, shape }, at, count) {
  const each = shape.slice(1).reduce((product, axis) => product * axis, 1);
  return { port, data: data.subarray(at * each, (at + count) * each), shape: [count, ...shape.slice(1)] };
}

// Without a prototype, so that a port may have any name.
function byName(ports) {
  return Object.assign(Object.create(null), Object.fromEntries(ports.map((port) => [port.name, port])));
}

function valuesBy(ports, make) {
  return Object.fromEntries(ports.map((port) => [port.name, make(port)]));
}

function listed(names) {
  return `[${[...names].sort().map((name) => `'${name}'`).join(", ")}]`;
}
