// Stepwise bundles that Python exported, with what its runtime writes on: tests/web/test_steps.py.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Bundle, BundleError } from "../index.js";
import { Sampler } from "../modgraph_web/generation.js";

const CASES = process.env.MODGRAPH_CASES, skip = CASES ? false : "pytest tests/web gives the cases";
const cases = CASES ? JSON.parse(readFileSync(CASES, "utf8")) : {};
const bundle = skip ? null : await Bundle.load(cases.bundle), plain = skip ? null : await Bundle.load(cases.plain);
const other = skip ? null : await Bundle.load(cases.other);

function near(found, wanted) {
  assert.equal(found.length, wanted.length);
  wanted.forEach((value, n) => assert.ok(Math.abs(found[n] - value) <= 1e-4 * Math.max(1, Math.abs(value)), `${n}: ${found[n]}, and ${value} in Python`));
}

test("the likeliest tokens are those of Python", { skip }, async () => {
  assert.deepEqual(await bundle.generate(cases.prompts, { tokens: 30 }), cases.written);
  const stop = cases.written[0][3], until = (row) => (row.includes(stop) ? row.slice(0, row.indexOf(stop)) : row);
  assert.deepEqual(await bundle.generate(cases.prompts, { tokens: 30, stop: [stop] }), cases.written.map(until));
});

test("weights of eight bits give the tokens of Python", { skip }, async () => {
  const rounded = await Bundle.load(cases.int8);
  assert.ok(rounded.manifest.int8.products.weights > 0);
  assert.deepEqual(await rounded.generate(cases.prompts, { tokens: 30 }), cases.rounded);
});

test("modules without tokens have no bytes to multiply", { skip }, async () => {
  const routed = await Bundle.load(cases.routed), x = { data: new Float32Array(40).fill(0.5), shape: [1, 5, 8] };
  near((await routed.run({ x })).y.data, cases.one);
});

test("tokens come with the modules that they chose", { skip }, async () => {
  const found = [];
  for await (const { tokens, modules } of bundle.stream(cases.prompts, { tokens: 3, routing: true })) found.push([tokens, modules]);
  assert.deepEqual(found, cases.streamed);
});

test("steps give what the whole sequence gives", { skip }, async () => {
  const whole = await bundle.run({ words: cases.words });
  near(whole.logits.data, cases.logits);
  const size = 12, row = (values, at) => [...values.logits.data.subarray(at * size, (at + 1) * size)];
  const first = await bundle.step(cases.words.map((each) => each.slice(0, 5)), { lengths: [5, 2] });
  const next = await bundle.step([[cases.words[1][2]]], { cache: first.cache.take([1]) });
  near(row(next.outputs, 0), row(whole, cases.words[0].length + 2));
  assert.deepEqual(next.cache.counts, [3]);
});

test("samples depend on seed and place, not on the batch", { skip }, async () => {
  const options = { tokens: 10, temperature: 1.5, seed: 3 }, together = await bundle.generate([[1], [1], [2, 3]], options);
  assert.deepEqual((await bundle.generate([[1]], options))[0], together[0]);
  assert.notDeepEqual(together[0], together[1]);
  assert.notDeepEqual(await bundle.generate([[1], [1], [2, 3]], { ...options, seed: 4 }), together);
});

test("samples follow the probabilities that are left", () => {
  const logits = Float32Array.of(2, 1, 0, -1), powers = [1, 0.5, 0, -0.5].map(Math.exp);
  for (const [options, left] of [[{}, 4], [{ topK: 2 }, 2], [{ topP: 0.7 }, 2], [{ topK: 3, topP: 0.9 }, 3]]) {
    const sampler = new Sampler({ temperature: 2, ...options }), counts = [0, 0, 0, 0];
    for (let n = 0; n < 4000; n++) counts[sampler.sample(logits, n, 0)]++;
    const whole = powers.slice(0, left).reduce((sum, power) => sum + power, 0);
    counts.forEach((count, n) => assert.ok(Math.abs(count / 4000 - (n < left ? powers[n] / whole : 0)) < 0.03, `${JSON.stringify(options)}: ${counts}`));
  }
});

test("what does not fit is reported in the words of Python", { skip }, async () => {
  const from = async (words, options) => (await bundle.step(words, options)).cache;
  const mistakes = {
    "takes no token after another": () => plain.step([[1]]),
    "--stepwise": () => plain.generate([[1]]),
    "there is no prompt": () => bundle.generate([]),
    "cannot continue prompt 2: it has no words": () => bundle.generate([[1], []], { tokens: 2 }),
    "its id 12 is not one of 12 words": () => bundle.generate([[12]], { tokens: 2 }),
    "exceed the model's 40 positions": () => bundle.generate([Array(20).fill(1)], { tokens: 22 }),
    "of another bundle": async () => bundle.step([[1]], { cache: (await other.step([[1]])).cache }),
    "a cache is what a step left behind": () => bundle.step([[1]], { cache: {} }),
    "has 2 examples, and the tokens have 1": async () => bundle.step([[1]], { cache: await from([[1], [2]]) }),
    "41 tokens are more than the 40": async () => bundle.step([[1]], { cache: await from([Array(40).fill(1)]) }),
    "at least one new token": () => bundle.step([[1], [2]], { lengths: [1, 0] }),
    "needs 2 axes, examples first": () => bundle.step([1, 2]),
  };
  for (const [words, mistake] of Object.entries(mistakes))
    await assert.rejects(async () => mistake(), (error) => error instanceof BundleError && error.message.includes(words), words);
  await assert.rejects(bundle.generate([[1]], { topP: 2 }), RangeError);
});
