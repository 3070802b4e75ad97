// What is read from bytes, whatever they are.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";
import { sha256 } from "@noble/hashes/sha2.js";
import { damageOf, digestOf } from "../modgraph_web/integrity.js";
import { metadataOf } from "../modgraph_web/manifest.js";

const bytes = (...parts) => Buffer.concat(parts.map((part) => Buffer.from(part)));
const counted = (field, content) => bytes([field * 8 + 2, content.length], content);
const entry = (key, value) => counted(14, bytes(counted(1, bytes(key)), counted(2, bytes(value))));
const MODEL = bytes([0x08, 0x0a], counted(2, bytes("modgraph")), [0x28, 0xff, 0xff, 0x7f], entry("other", "x"), entry("modgraph", "{é}"));

// Numbers from 0 to 1 that look random, and are the same each time.
function* random(seed) {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state / 2 ** 32;
  }
}

function sealed(content) {
  const key = "modgraph.sha256", digest = createHash("sha256").update(content).digest("hex");
  return new Uint8Array(bytes(content, entry(key, digest)));
}

test("metadata are found by their keys, the last of equal ones", () => {
  assert.equal(metadataOf(MODEL, "modgraph"), "{é}");
  assert.equal(metadataOf(MODEL, "nothing"), null);
  assert.equal(metadataOf(bytes(MODEL, entry("modgraph", "2")), "modgraph"), "2");
  assert.equal(metadataOf(new Uint8Array(), "modgraph"), null);
  assert.throws(() => metadataOf(entry("modgraph", [0xc3]), "modgraph"), TypeError);
});

test("bytes that are no message end in an error with a message", () => {
  const numbers = random(1), next = () => numbers.next().value;
  let refused = 0;
  for (let n = 0; n < 5000; n++) {
    const changed = Uint8Array.from(MODEL);
    for (let m = 0; m < 3; m++) changed[Math.floor(next() * changed.length)] = next() * 256;
    try {
      metadataOf(changed.subarray(0, Math.ceil(next() * changed.length)), "modgraph");
    } catch (error) {
      assert.ok(error instanceof RangeError || error instanceof TypeError, error.stack);
      refused++;
    }
  }
  assert.ok(refused > 500);
});

test("lengths beyond all bounds are no reason to read on", () => {
  for (const length of [[0xff, 0xff, 0xff, 0xff, 0x7f], Array(9).fill(0xff).concat([0x01]), Array(12).fill(0xff)])
    assert.throws(() => metadataOf(bytes([14 * 8 + 2], length, "abc"), "modgraph"), RangeError);
});

test("every change of a bit is noticed", async () => {
  const whole = sealed(MODEL);
  assert.equal(await damageOf(whole, sha256), null);
  for (let at = 0; at < 8 * whole.length; at++) {
    const changed = Uint8Array.from(whole);
    changed[at >> 3] ^= 1 << (at & 7);
    assert.notEqual(await damageOf(changed, sha256), null, `bit ${at}`);
  }
  for (let length = 0; length < whole.length; length++)
    assert.notEqual(await damageOf(whole.subarray(0, length), sha256), null, `${length} bytes`);
});

test("the digest is the same where the browser has none", async () => {
  const subtle = Object.getOwnPropertyDescriptor(globalThis, "crypto");
  for (const size of [0, 1, 55, 56, 64, 1000, 100003]) {
    const content = Uint8Array.from({ length: size }, (_, n) => n * 7), wanted = createHash("sha256").update(content).digest("hex");
    assert.equal(await digestOf(content), wanted);
    Object.defineProperty(globalThis, "crypto", { value: {}, configurable: true });
    assert.equal(await digestOf(content, sha256), wanted);
    Object.defineProperty(globalThis, "crypto", subtle);
  }
});
