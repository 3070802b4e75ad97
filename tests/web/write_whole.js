// Continues prompts by the likeliest tokens, and reads the whole sequences again for each: node write_whole.js cases.json

import { readFileSync, writeFileSync } from "node:fs";
import { Bundle } from "../../export/web/index.js";

const { bundle: path, prompts, tokens, words, lengths, logits, choices, found } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const bundle = await Bundle.load(path, { threads: 1 });
const sequences = prompts.map((each) => [...each]), steps = [];
for (let place = 0; place <= tokens; place++) {
  const most = Math.max(...sequences.map((each) => each.length)), last = sequences.map((each) => each.length - 1);
  const padded = sequences.map((each) => [...each, ...Array(most - each.length).fill(0)]);
  const outputs = await bundle.run({ [words]: padded, [lengths]: sequences.map((each) => each.length) }, { routing: true });
  const row = ({ data, shape }, at) => {
    const size = shape.slice(2).reduce((product, axis) => product * axis, 1), from = (at * most + last[at]) * size;
    return data.subarray(from, from + size);
  };
  const modules = sequences.map((_, at) => Object.fromEntries(Object.entries(choices).map(([route, record]) => {
    const size = outputs[record].shape.at(-1), picked = new Set();
    row(outputs[record], at).forEach((value, n) => { if (value !== 0) picked.add(n % size); });
    return [route, [...picked].sort((a, b) => a - b)];
  })));
  const ids = sequences.map((_, at) => row(outputs[logits], at).reduce((best, value, n, all) => (value > all[best] ? n : best), 0));
  steps.push({ tokens: place < tokens ? ids : ids.map(() => null), modules });
  sequences.forEach((each, at) => each.push(ids[at]));
}
writeFileSync(found, JSON.stringify(steps));
