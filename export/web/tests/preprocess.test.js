// Pictures and texts, with what data sets in Python make of them: tests/web/test_preprocessing.py.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Port } from "../modgraph_web/ports.js";
import { hasPieces, imageInput, wordsInput, wordsReader } from "../modgraph_web/preprocess.js";

const CASES = process.env.MODGRAPH_CASES, skip = CASES ? false : "pytest tests/web gives the cases";
const cases = CASES ? JSON.parse(readFileSync(CASES, "utf8")) : { pictures: [], texts: [] };

// As much of a bundle as is asked for.
function telling(entry, preprocessing, words) {
  const port = Port.of(entry, {});
  return { inputs: { [port.name]: port }, manifest: { preprocessing: { [port.name]: preprocessing }, words: { [port.name]: words } } };
}

function close(found, wanted) {
  assert.equal(found.length, wanted.length);
  wanted.forEach((value, n) => assert.ok(Math.abs(found[n] - value) < 1e-5, `[${n}]: ${found[n]}, and ${value} in Python`));
}

test("pictures become what data sets make of them", { skip }, () => {
  for (const { port, preprocessing, picture, expected } of cases.pictures) {
    const bundle = telling(port, preprocessing), { width, height } = picture;
    const found = imageInput(bundle, "image", { width, height, data: Uint8ClampedArray.from(picture.data) });
    assert.deepEqual(found.shape, [1, ...port.shape]);
    close(found.data, expected);
    close(imageInput(bundle, "image", { width, height, data: Float32Array.from(picture.data, (byte) => byte / 255) }).data, expected);
  }
});

test("texts become what data sets make of them", { skip }, () => {
  for (const { port, preprocessing, known, text, words, ids, unknown } of cases.texts) {
    const found = wordsInput(telling(port, preprocessing, known), port.name, text);
    assert.deepEqual({ ...found, data: [...found.data] }, { data: ids, shape: [1, ids.length], words, unknown }, JSON.stringify(text));
  }
});

test("ids become text again, each letter with its last piece", { skip }, () => {
  for (const { port, preprocessing, known, text, ids, read } of cases.texts.filter((each) => each.read)) {
    const bundle = telling(port, preprocessing, known);
    assert.ok(hasPieces(bundle, port.name));
    assert.deepEqual(ids.map(wordsReader(bundle, port.name)), read, JSON.stringify(text));
    assert.equal(read.join(""), text);
  }
});

const IMAGE = { name: "image", dtype: "float", shape: [1, 4, 4] }, WORDS = { name: "words", dtype: "token", shape: ["time"], size: 2 };
const DARK = { channels: "grey", ground: "dark" }, picture = { width: 2, height: 2, data: Uint8Array.of(255, 255, 255, 0) };

test("inverting is an option", () => {
  const light = (options) => imageInput(telling(IMAGE, DARK), "image", picture, options).data;
  close(light({ invert: true }), light({}));
  close(light({ invert: false }), Array.from(light({}), (value) => 1 - value));
});

test("what the manifest does not say is reported", () => {
  const says = (message, work) => assert.throws(work, { name: "BundleError", message });
  for (const how of [undefined, "ink is 1", { words: "ink is 1" }, { channels: "red, green, blue" }])
    says(/does not describe how to make "image", float\[1, 4, 4\], from a picture; export it again/, () => imageInput(telling(IMAGE, how), "image", picture));
  says(/no input "picture"/, () => imageInput(telling(IMAGE, DARK), "picture", picture));
  says(/a scale of "image" that does not fit/, () => imageInput(telling(IMAGE, { ...DARK, deviation: [0] }), "image", picture));
  says(/a scale of "image" that does not fit/, () => imageInput(telling(IMAGE, { ...DARK, mean: [1, 2] }), "image", picture));
  says(/has 4 values; 3 × 2 pixels have 1, 3 or 4 each/, () => imageInput(telling(IMAGE, DARK), "image", { ...picture, width: 3 }));
  const known = ["<unk>", "a"], how = { split: "blanks", unknown: "<unk>" };
  for (const [given, words] of [[undefined, known], ["split at blanks", known], [how, undefined]])
    says(/does not describe how to make "words", token\[time, 2\], from a text/, () => wordsInput(telling(WORDS, given, words), "words", "a"));
  for (const tokenizer of [undefined, { model: { type: "BPE" } }, { model: { type: "WordPiece" }, pre_tokenizer: { type: "ByteLevel" } }])
    says(/the tokenizer of "words" is not byte-pair encoding over bytes alone; encode texts in Python/, () => wordsInput(telling(WORDS, { split: "tokenizer", tokenizer }, known), "words", "a"));
  says(/no word for unknown words/, () => wordsInput(telling(WORDS, how, ["a", "b"]), "words", "a"));
});
