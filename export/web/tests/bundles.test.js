// Bundles that Python exported, with what its runtime made of inputs and of damaged files: tests/web/test_module.py.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import test from "node:test";
import { Bundle, BundleError } from "../index.js";

const CASES = process.env.MODGRAPH_CASES, skip = CASES ? false : "pytest tests/web gives the cases";
const cases = CASES ? JSON.parse(readFileSync(CASES, "utf8")) : { good: [], bad: [], options: [], damaged: [], lying: [], manifests: {}, ports: {} };

const TOLERANCE = 1e-5;
const TYPES = {
  float32: Float32Array, float64: Float64Array, int64: BigInt64Array, int32: Int32Array, uint8: Uint8Array,
};
const loaded = new Map();

function bundleAt(path) {
  if (!loaded.has(path)) loaded.set(path, Bundle.load(path));
  return loaded.get(path);
}

function given(inputs) {
  if (Array.isArray(inputs) || typeof inputs !== "object") return inputs;
  const values = ([name, value]) => [name, value?.dtype ? { data: dataOf(value), shape: value.shape } : value];
  return Object.fromEntries(Object.entries(inputs).map(values));
}

function dataOf({ dtype, values }) {
  const numbers = values.map((value) => ({ nan: NaN, inf: Infinity, "-inf": -Infinity })[value] ?? value);
  if (dtype === "int64") return BigInt64Array.from(numbers, BigInt);
  return TYPES[dtype]?.from(numbers) ?? numbers;
}

function close(found, wanted, name) {
  assert.deepEqual(found.shape, wanted.shape, name);
  assert.equal(found.data.length, wanted.data.length, name);
  wanted.data.forEach((value, n) => {
    const off = Math.abs(found.data[n] - value);
    assert.ok(off <= TOLERANCE * Math.max(1, Math.abs(value)), `${name}[${n}]: ${found.data[n]}, and ${value} in Python`);
  });
}

test("outputs and decisions are those of Python", { skip }, async () => {
  for (const { title, bundle, inputs, outputs, predicted } of cases.good) {
    const model = await bundleAt(bundle), found = await model.run(given(inputs), { routing: true });
    assert.deepEqual(Object.keys(found), Object.keys(outputs), title);
    for (const name of Object.keys(outputs)) close(found[name], outputs[name], `${title}, ${name}`);
    const best = await model.predict(given(inputs));
    for (const name of Object.keys(predicted)) {
      if (model.outputs[name].target === null) close(best[name], predicted[name], `${title}, ${name}`);
      else assert.deepEqual({ ...best[name], data: [...best[name].data] }, predicted[name], title);
    }
    const plain = await model.run(given(inputs));
    assert.deepEqual(Object.keys(plain), Object.keys(model.outputs), title);
  }
});

test("chunks change nothing", { skip }, async () => {
  const { bundle, inputs, outputs } = cases.good[0];
  const found = await (await bundleAt(bundle)).run(given(inputs), { routing: true, chunk: 2 });
  for (const name of Object.keys(outputs)) close(found[name], outputs[name], name);
});

test("what does not fit is reported in the same words", { skip }, async () => {
  for (const { title, bundle, inputs, message } of cases.bad) {
    const model = await bundleAt(bundle);
    await assert.rejects(model.run(given(inputs)), (error) => {
      assert.ok(error instanceof BundleError, `${title}: ${error.stack}`);
      assert.equal(error.message, message, title);
      return true;
    });
  }
});

test("wrong options are refused in the same words", { skip }, async () => {
  for (const { bundle, options, message } of cases.options)
    await assert.rejects((await bundleAt(bundle)).run({}, options), { name: "BundleError", message });
});

test("damaged files are refused in the same words", { skip }, async () => {
  for (const { path, reason, wayOut } of cases.damaged) {
    const words = wayOut.replace("check=False, --unchecked", "check: false");
    await assert.rejects(Bundle.load(path), { name: "BundleError", reason, wayOut: words }, path);
    await assert.rejects(Bundle.load(readFileSync(path)), { reason: reason.replace(`"${path}"`, "the file") });
  }
});

test("so are files whose manifest or model is wrong", { skip }, async () => {
  for (const { path, reason } of cases.lying) {
    const known = reason.replace(/((?:is damaged|that can be loaded): )(?!it (tells|says)).*/, "$1"); // then it is the library's
    await assert.rejects(Bundle.load(path), (error) => {
      assert.ok(error instanceof BundleError, `${path}: ${error.stack}`);
      assert.equal(error.reason.slice(0, known.length), known, path);
      return true;
    });
  }
});

test("a bundle has what Python reads in it", { skip }, async () => {
  for (const [path, manifest] of Object.entries(cases.manifests)) {
    const bundle = await bundleAt(path);
    assert.deepEqual(bundle.manifest, manifest);
    const ports = { ...bundle.inputs, ...bundle.outputs, ...bundle.routing };
    assert.deepEqual(Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)])), cases.ports[path]);
    const copy = await Bundle.load(new Uint8Array(readFileSync(path)).buffer);
    assert.deepEqual(copy.manifest, manifest);
    await copy.release();
    await assert.rejects(copy.run({}), /was released/);
  }
});

test("unchecked, a changed trailer does no harm", { skip }, async () => {
  const bytes = new Uint8Array(readFileSync(Object.keys(cases.manifests)[0]));
  bytes[bytes.length - 1] ^= 1;
  const bundle = await Bundle.load(bytes, { check: false });
  assert.deepEqual(bundle.manifest, Object.values(cases.manifests)[0]);
  await bundle.release();
});

test("files that are not there are reported", { skip }, async () => {
  await assert.rejects(Bundle.load("nowhere.onnx"), { message: 'there is no file "nowhere.onnx"' });
  await assert.rejects(Bundle.load(42), BundleError);
});

test("files come from servers, which may refuse them", { skip }, async () => {
  const [path] = Object.keys(cases.manifests), statuses = { "/model.onnx": 200, "/secret.onnx": 403 };
  const server = createServer((request, response) => {
    response.writeHead(statuses[request.url] ?? 404);
    response.end(statuses[request.url] === 200 ? readFileSync(path) : "no");
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const url = (name) => `http://127.0.0.1:${server.address().port}/${name}`;
  const bundle = await Bundle.load(new URL(url("model.onnx")));
  assert.deepEqual(bundle.manifest, cases.manifests[path]);
  await assert.rejects(Bundle.load(url("other.onnx")), { message: `there is no file "${url("other.onnx")}"` });
  await assert.rejects(Bundle.load(url("secret.onnx")), { message: `cannot read "${url("secret.onnx")}": the server answers 403` });
  await bundle.release();
  server.close();
  server.closeAllConnections();
});

test("who does not wait for one result gets all", { skip }, async () => {
  const { bundle, inputs, outputs } = cases.good[0], model = await bundleAt(bundle);
  const found = await Promise.all(Array.from({ length: 4 }, (_, n) => model.run(given(inputs), { chunk: n + 1 })));
  for (const each of found) close(each.logits, outputs.logits, "logits");
});
