// Continues sequences of tokens by a stepwise bundle. The options and their meaning are those of Python.

import { largest } from "./arrays.js";
import { BundleError } from "./errors.js";
import { AGAIN } from "./steps.js";

// How the next token follows from its logits. Temperature 0 takes the most likely one, of equal ones the first. A higher
// one divides the logits; then only the `topK` most likely tokens are left, and of these the fewest whose probabilities sum
// to `topP`. Throws `RangeError` for values out of range.
export class Sampler {
  constructor({ temperature = 0, topK = null, topP = null, seed = 0 } = {}) {
    if (!(temperature >= 0 && temperature < Infinity)) throw new RangeError(`temperature must be 0 or more, not ${temperature}`);
    if (topK !== null && !(Number.isInteger(topK) && topK >= 1)) throw new RangeError(`topK must be at least 1, not ${topK}`);
    if (topP !== null && !(topP > 0 && topP <= 1)) throw new RangeError(`topP must be above 0 and at most 1, not ${topP}`);
    Object.assign(this, { temperature, topK, topP, seed });
  }

  // A token for logits. The noise is a function of the seed, the number of the sample and the place.
  sample(logits, number, place) {
    if (!this.temperature) return largest(logits);
    const scaled = Float64Array.from(logits, (value) => value / this.temperature), random = noiseOf(this.seed, number, place);
    const kept = this.#kept(scaled), noisy = kept.map((token) => scaled[token] - Math.log(-Math.log(random())));
    return kept[largest(noisy)];
  }

  // The tokens that are left, the most likely first.
  #kept(scaled) {
    const order = Array.from(scaled.keys()).sort((a, b) => scaled[b] - scaled[a] || a - b).slice(0, this.topK ?? scaled.length);
    if (this.topP === null) return order;
    const powers = order.map((token) => Math.exp(scaled[token] - scaled[order[0]]));
    const whole = powers.reduce((sum, power) => sum + power, 0);
    let before = 0;
    return order.filter((_, n) => {
      const isKept = before < this.topP;
      before += powers[n] / whole;
      return isKept;
    });
  }
}

// Numbers between 0 and 1, without both (mulberry32, of a seed that mixes three).
function noiseOf(...numbers) {
  let state = numbers.reduce((mixed, number) => Math.imul(mixed ^ number, 0x9e3779b1) ^ (mixed >>> 15), 0x243f6a88);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (((mixed ^ (mixed >>> 14)) >>> 0) + 0.5) / 2 ** 32;
  };
}

// Continues sequences of tokens by a bundle. Throws `BundleError` where it gives no logits of the next token.
export class Generator {
  constructor(bundle, title) {
    if (!bundle.stepwise) throw new BundleError(`${title} takes no token after another`, AGAIN);
    if (!(bundle.stepwise.logits in bundle.outputs)) 
      throw new BundleError(`${title} has no output with the logits of the next token`, "export that output too, or sample from step(tokens) yourself");
    this.bundle = bundle;
    this.words = bundle.inputs[bundle.stepwise.tokens].size ?? 0;
    this.choices = Object.keys(bundle.routing).length ? Object.entries(bundle.stepwise.choices) : [];
  }

  run(prompts, tokens, sampler, stop, routing) {
    this.#check(prompts, tokens, stop, routing);
    return this.#run(prompts, tokens, sampler, stop, routing);
  }

  async *#run(prompts, tokens, sampler, stop, routing) {
    const { logits } = this.bundle.stepwise, most = Math.max(...prompts.map((each) => each.length));
    const padded = { data: Int32Array.from(prompts.flatMap((each) => [...each, ...Array(most - each.length).fill(0)])), shape: [prompts.length, most] };
    let rows = prompts.map((_, row) => row), last = prompts.map((each) => each.length - 1);
    let found = await this.bundle.step(padded, { lengths: prompts.map((each) => each.length), routing });
    for (let place = 0; place < tokens; place++) {
      const picked = rows.map((row, at) => sampler.sample(rowAt(found.outputs[logits], at, last[at]), row, place));
      const next = Array(prompts.length).fill(null);
      rows.forEach((row, at) => { next[row] = picked[at]; });
      yield { tokens: next, modules: this.#modules(found, rows, last, routing) };
      const kept = [...rows.keys()].filter((at) => !stop.has(picked[at]));
      if (!kept.length || (place === tokens - 1 && !routing)) return;
      const cache = kept.length === rows.length ? found.cache : found.cache.take(kept);
      const data = Int32Array.from(kept, (at) => picked[at]);
      rows = kept.map((at) => rows[at]);
      last = kept.map(() => 0);
      found = await this.bundle.step({ data, shape: [kept.length, 1] }, { cache, routing });
    }
    yield { tokens: Array(prompts.length).fill(null), modules: this.#modules(found, rows, last, routing) };
  }

  // The modules that the last token of each sequence chose: by sequence, an object of lists by route.
  #modules(found, rows, last, routing) {
    const modules = {};
    if (!routing) return modules;
    rows.forEach((row, at) => {
      modules[row] = Object.fromEntries(this.choices.map(([route, record]) => {
        const size = found.routing[record].shape.at(-1), picked = new Set();
        rowAt(found.routing[record], at, last[at]).forEach((value, n) => { if (value !== 0) picked.add(n % size); });
        return [route, [...picked].sort((a, b) => a - b)];
      }));
    });
    return modules;
  }

  // Throws `BundleError` for prompts that are empty, have ids beyond the words, or become too long, `TypeError` and
  // `RangeError` for what are no ids.
  #check(prompts, tokens, stop, routing) {
    if (typeof prompts === "string" || prompts.some((each) => typeof each === "string" || !(each?.length >= 0)))
      throw new TypeError("generate takes a list of ids for each prompt, generate([[1, 2], [3]]), and no texts");
    if (!(Number.isInteger(tokens) && tokens >= 0)) throw new RangeError(`tokens must be a whole number, 0 or more, not ${tokens}`);
    for (const id of stop) 
      if (!(Number.isInteger(id) && id >= 0 && id < this.words)) throw new RangeError(`the stop token ${id} is not one of ${this.words.toLocaleString("en-US")} words`);
    if (!prompts.length) throw new BundleError("there is no prompt", "give lists of ids: generate([[1, 2]])");
    prompts.forEach((prompt, n) => {
      const misfit = misfitOf(prompt, tokens, this.words, this.bundle.stepwise.longest, routing);
      if (misfit) throw new BundleError(`cannot continue prompt ${n + 1}: ${misfit[0]}`, misfit[1]);
    });
  }
}

// Why a prompt cannot be continued by so many tokens, and a way out; null if it can. With `routing`, the last new token
// is read too.
function misfitOf(prompt, tokens, words, longest, routing) {
  const all = words.toLocaleString("en-US"), last = (words - 1).toLocaleString("en-US"), many = prompt.length;
  if (!many) return ["it has no words", "give at least one word"];
  const beyond = prompt.find((id) => !(Number.isInteger(id) && id >= 0 && id < words));
  if (beyond !== undefined) return [`its id ${beyond} is not one of ${all} words`, `ids of words are 0 to ${last}`];
  const room = longest === null ? Infinity : longest + 1 - many - (routing ? 1 : 0);
  if (tokens <= room) return null;
  const reason = `${many} word${many === 1 ? "" : "s"} and ${tokens} more exceed the model's ${longest} positions`;
  const why = routing && tokens === room + 1 ? ", for the last one is read too, for its modules" : "";
  return [reason + why, room > 0 ? `ask for at most ${room} new words` : "give a shorter prompt"];
}

// The values of a token of an example, in an array [B, tokens, …].
function rowAt({ data, shape }, example, place) {
  const size = shape.slice(2).reduce((product, axis) => product * axis, 1), at = (example * shape[1] + place) * size;
  return data.subarray(at, at + size);
}
