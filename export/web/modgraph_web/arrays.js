// Arrays as a caller gives them, all brought to one form: {data, shape, dtype, kind}.
//
// `dtype` is the type as numpy calls it, `kind` numpy's letter for a family of types: f, i, u, b; U is text, O anything.

import { BundleError } from "./errors.js";

const TYPED = {
  Float16Array: "float16", Float32Array: "float32", Float64Array: "float64",
  Int8Array: "int8", Int16Array: "int16", Int32Array: "int32", BigInt64Array: "int64",
  Uint8Array: "uint8", Uint8ClampedArray: "uint8", Uint16Array: "uint16", Uint32Array: "uint32", BigUint64Array: "uint64",
};
const LETTERS = { float: "f", int: "i", uint: "u", bool: "b", "<U": "U" };

// A typed array, numbers nested in arrays, or {data, shape} of one of them.
export function arrayOf(value, name) {
  if (value !== null && typeof value === "object" && "data" in value) {
    const { data, shape } = value;
    const flat = arrayOf(data, name);
    if (shape === undefined) return flat;
    if (!Array.isArray(shape) || !shape.every((axis) => Number.isSafeInteger(axis) && axis >= 0))
      throw new BundleError(`"${name}" has a shape that is no list of numbers from 0 on`);
    const count = shape.reduce((product, axis) => product * axis, 1);
    if (flat.data.length !== count)
      throw new BundleError(`"${name}" has ${flat.data.length} values; the shape [${shape.join(", ")}] needs ${count}`);
    return { ...flat, shape: [...shape] };
  }
  const dtype = ArrayBuffer.isView(value) && TYPED[value[Symbol.toStringTag]];
  if (dtype) return { data: value, shape: [value.length], ...typed(dtype) };
  const data = [], shape = [];
  for (let inner = value; Array.isArray(inner); inner = inner[0]) shape.push(inner.length);
  flatten(value, shape, 0, data, name);
  return { data, shape, ...typed(dtypeOf(data)) };
}

function flatten(value, shape, depth, into, name) {
  if (Array.isArray(value) !== depth < shape.length || (Array.isArray(value) && value.length !== shape[depth]))
    throw new BundleError(`"${name}" is no array: its rows differ in length`);
  if (!Array.isArray(value)) into.push(value);
  else for (const inner of value) flatten(inner, shape, depth + 1, into, name);
}

function typed(dtype) {
  return { dtype, kind: LETTERS[/^<U|^[a-z]+/.exec(dtype)[0]] ?? "O" };
}

// What numpy makes of values: whole numbers are int64, since JavaScript has one type for all numbers.
function dtypeOf(values) {
  const kinds = new Set(values.map((value) => typeof value));
  const among = (...known) => [...kinds].every((kind) => known.includes(kind));
  if (!values.length) return "float64";
  if (among("boolean")) return "bool";
  if (among("number", "bigint", "boolean")) return values.every(isWhole) ? "int64" : "float64";
  if (among("string")) return `<U${values.reduce((most, text) => Math.max(most, [...text].length), 1)}`;
  return "object";
}

function isWhole(value) {
  return typeof value === "number" ? Number.isSafeInteger(value) : BigInt.asIntN(64, BigInt(value)) === BigInt(value);
}

// The smallest and the largest value, as numbers. There is at least one.
export function extremes(data) {
  let least = Number(data[0]), most = least;
  for (let n = 1; n < data.length; n++) {
    const value = Number(data[n]);
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return [least, most];
}

// Values as a tensor of ONNX Runtime holds them: the same, where they have the type already.
export function asFloat32(data) {
  return data instanceof Float32Array ? data : Float32Array.from(data, Number);
}

export function asInt64(data) {
  return data instanceof BigInt64Array ? data : BigInt64Array.from(data, BigInt);
}

// Where the largest of some values is, the first of equal ones; what is not a number counts as largest.
export function largest(values) {
  let best = 0;
  for (let n = 1; n < values.length && !Number.isNaN(values[best]); n++)
    if (values[n] > values[best] || Number.isNaN(values[n])) best = n;
  return best;
}
