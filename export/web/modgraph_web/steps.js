// What a stepwise bundle keeps of earlier tokens: caches, which a step takes from the one before.

import { BundleError } from "./errors.js";
import { FLOAT, Port } from "./ports.js";

export const AGAIN = "export it so: modgraph export RUN -o model.onnx --stepwise";

// What tokens have left behind: arrays by name, {data, shape}, and the number of tokens of each example. `weights` are
// those of the bundle.
export class Cache {
  constructor(values, counts, weights) {
    Object.assign(this, { values, counts, weights });
  }

  // The caches of some examples, in this order; an example may occur several times.
  take(rows) {
    const values = Object.entries(this.values).map(([name, { data, shape }]) => {
      const each = shape.slice(1).reduce((product, axis) => product * axis, 1), found = new data.constructor(rows.length * each);
      rows.forEach((row, at) => found.set(data.subarray(row * each, (row + 1) * each), at * each));
      return [name, { data: found, shape: [rows.length, ...shape.slice(1)] }];
    });
    return new Cache(Object.fromEntries(values), rows.map((row) => this.counts[row]), this.weights);
  }
}

// How a bundle takes tokens one after another. `tokens` names its input, along `axis`; `logits` the output for the next
// token, if it has one. `longest` bounds the number of tokens. `inputs` and `outputs` are ports of caches, and of lengths
// that follow from them; `choices` are records with the modules of each route. `windows` has the number of tokens that
// some caches keep at most, by a word for their axis.
export class StepFacts {
  // How a stepwise bundle takes tokens, null for others. Throws `TypeError` if it makes no sense.
  static of(manifest) {
    if (!Object.hasOwn(manifest, "stepwise")) return null;
    const { tokens, axis, logits = null, longest = null, caches, lengths = {}, choices = {}, windows = {} } = manifest.stepwise;
    const facts = new StepFacts(), inputs = Object.create(null), outputs = Object.create(null);
    for (const entry of caches) {
      const shape = entry.shape.map((each) => (each === `${axis}.past` ? `${axis}.total` : each));
      inputs[entry.name] = Port.of(entry, {});
      outputs[entry.name] = Port.of({ ...entry, tensor: entry.next, shape }, {});
    }
    for (const [what, name] of Object.entries(lengths))
      inputs[name] = Port.of({ name, dtype: "length", shape: [], of: `${axis}.${what}` }, {});
    if (!manifest.inputs.find(({ name }) => name === tokens)?.shape.includes(axis)) throw new TypeError("its tokens have no such axis");
    if (!(longest === null || Number.isSafeInteger(longest))) throw new TypeError("the number of its tokens is no whole number");
    Object.assign(facts, { axis, windows });
    const known = facts.#countLengths([], []);
    for (const each of Object.values(inputs).flatMap((port) => [...port.shape, ...(port.along ? [port.along] : [])]))
      if (typeof each === "string" && !Object.hasOwn(known, each)) throw new TypeError(`nothing says how many tokens "${each}" has`);
    if (!Object.values(windows).every((most) => Number.isSafeInteger(most) && most > 0))
      throw new TypeError("a number of tokens that caches keep is no whole number");
    return Object.assign(facts, { tokens, logits, longest, inputs, outputs, choices, weights: manifest.weights ?? "" });
  }

  get caches() {
    return Object.values(this.inputs).filter((port) => port.dtype !== "length");
  }

  // The cache before the first token.
  begin(examples) {
    const values = this.caches.map((port) => {
      const shape = [examples, ...port.shape.map((axis) => (typeof axis === "string" ? 0 : axis))];
      const size = shape.reduce((product, axis) => product * axis, 1);
      return [port.name, { data: port.kind === FLOAT ? new Float32Array(size) : new BigInt64Array(size), shape }];
    });
    return new Cache(Object.fromEntries(values), Array(examples).fill(0), this.weights);
  }

  // What a step takes that has so many new tokens of each example: {port, data, shape}. Throws `BundleError`.
  feed(cache, counted) {
    this.#check(cache, counted);
    const known = this.#countLengths(cache.counts, counted);
    return Object.values(this.inputs).map((port) => port.dtype === "length"
      ? { port, data: BigInt64Array.from(known[port.along], BigInt), shape: [counted.length] }
      : { port, ...cache.values[port.name] });
  }

  // The cache after a step, whose tensors are given by name.
  follow(cache, counted, results) {
    const values = Object.values(this.outputs).map((port) => [port.name, { data: results[port.tensor].data, shape: [...results[port.tensor].dims] }]);
    return new Cache(Object.fromEntries(values), cache.counts.map((count, n) => count + counted[n]), this.weights);
  }

  // The tokens of each example along the axes of earlier and of all tokens, by axis.
  #countLengths(past, counted) {
    const found = {};
    for (const [name, most] of Object.entries({ "": Infinity, ...this.windows })) {
      const kept = past.map((count) => Math.min(count, most)), place = name ? `${this.axis}.${name}` : this.axis;
      found[`${place}.past`] = kept;
      found[`${place}.total`] = kept.map((count, n) => count + counted[n]);
    }
    return found;
  }

  #check(cache, counted) {
    if (!(cache instanceof Cache)) throw new BundleError("a cache is what a step left behind", "give step(…).cache");
    if (cache.weights !== this.weights) throw new BundleError("the cache is of another bundle", "begin anew: step(tokens)");
    if (cache.counts.length !== counted.length)
      throw new BundleError(`the cache has ${cache.counts.length} examples, and the tokens have ${counted.length}`,
        "take those that go on: cache.take(rows)");
    const known = this.#countLengths(cache.counts, counted), least = (axis) => Math.max(0, ...known[axis]);
    const most = Math.max(0, ...cache.counts.map((count, n) => count + counted[n]));
    const fits = this.caches.every(({ name, shape }) => fitsShape(cache.values[name]?.shape, [counted.length, ...shape], least));
    if (!fits) throw new BundleError("the arrays of the cache are not those that a step left behind", "give step(…).cache");
    if (this.longest !== null && most > this.longest)
      throw new BundleError(`${most} tokens are more than the ${this.longest} positions of the model`);
  }
}

function fitsShape(found, wanted, least) {
  return found?.length === wanted.length && wanted.every((axis, n) => (typeof axis === "string" ? found[n] >= least(axis) : found[n] === axis));
}
