// What a bundle takes and gives: ports as its manifest describes them, and arrays checked against them.

import { arrayOf, asFloat32, asInt64, extremes } from "./arrays.js";
import { BundleError } from "./errors.js";

const LENGTH = "length", EDGE = "edge";
export const BATCH = "the batch"; // a name that no axis of a spec can have
export const FLOAT = "float32", WHOLE = "int64";

// An input or output: what each example holds. `shape` has numbers, and names for axes of any length.
//
// `dtype` is `float`, `token`, `class`, `length` or `edge`; `size` is the vocabulary of tokens or the number of classes. An
// output that distinguishes the classes of a `target` has one value for each along its last axis, and their names in
// `classes` where they are known. `tensor` is the name in the ONNX graph. `along` is the axis whose length it gives for
// each example. Edges are pairs of places along two axes, `ends`.
export class Port {
  // A port as a manifest writes it. Throws `TypeError` if it makes no sense.
  static of(entry, classes) {
    for (const key of ["name", "dtype", "shape"]) if (!Object.hasOwn(entry, key)) throw new TypeError(`a port has no ${key}`);
    const { name, dtype, shape, size = null, tensor = name, target = null } = entry;
    const names = Object.hasOwn(classes, name) ? classes[name] : [];
    const along = entry.of ?? "";
    if (![name, dtype, tensor, target ?? "", along, ...names].every((text) => typeof text === "string"))
      throw new TypeError("a name is no text");
    if (!["float", "token", "class", LENGTH, EDGE].includes(dtype) || !(size === null || Number.isSafeInteger(size)))
      throw new TypeError(`"${name}" has an unknown type`);
    if (!Array.isArray(shape) || !shape.every(isAxis) || (target && !shape.length))
      throw new TypeError(`"${name}" has an unknown shape`);
    const ends = entry.ends ?? [];
    if (!Array.isArray(ends) || ends.length !== (dtype === EDGE ? 2 : 0) || !ends.every(isAxis))
      throw new TypeError(`"${name}" has unknown ends`);
    return Object.freeze(Object.assign(new Port(), { name, dtype, shape: Object.freeze([...shape]), size, tensor, target,
      classes: Object.freeze([...names]), along, ends: Object.freeze([...ends]) }));
  }

  // The type of its values, as ONNX Runtime calls it.
  get kind() {
    return this.dtype === "float" ? FLOAT : WHOLE;
  }

  toString() {
    const shape = this.ends.length ? [...this.shape.slice(0, -1), ...this.ends] : this.shape;
    const axes = this.size === null ? shape : [...shape, this.size];
    return axes.length ? `${this.dtype}[${axes.join(", ")}]` : this.dtype;
  }
}

function isAxis(axis) {
  return isLength(axis) || (typeof axis === "string" && axis !== "");
}

function isLength(axis) {
  return Number.isSafeInteger(axis) && axis >= 1;
}

// Throws `TypeError` for an axis of any length that none of a list of inputs has, or a bound that is no length.
export function checkAxes(inputs, outputs, longest) {
  const axesOf = (ports) => Object.values(ports).flatMap((port) => port.shape.filter((axis) => typeof axis === "string"));
  const known = new Set(axesOf(inputs)), ends = inputs.filter((port) => port.dtype === LENGTH);
  const unknown = [...axesOf(outputs), ...ends.map((port) => port.along)].filter((axis) => !known.has(axis)).sort();
  if (unknown.length) throw new TypeError(`no input has the axis "${unknown[0]}"`);
  if (![...longest.values()].every(isLength)) throw new TypeError("the longest length of an axis is no length");
}

// The inputs of a model. `longest` bounds axes that cannot have any length.
export class Inputs {
  constructor(ports, longest) {
    this.ports = ports;
    this.longest = longest;
  }

  toString() {
    const expected = Object.values(this.ports).filter((port) => port.dtype !== LENGTH);
    return expected.map((port) => `${port.name} ${port}`).join(", ");
  }

  // Arrays as the model takes them, {data, shape} by name, lengths that are not given filled in; and how long each axis
  // is, a Map. Behind the end of an example, whose length is given, anything may be: what the type has not becomes
  // zero. Throws `BundleError` where an array is missing, unknown or does not fit.
  fitted(given) {
    if (given === null || typeof given !== "object" || Array.isArray(given) || ArrayBuffer.isView(given)) {
      const example = Object.values(this.ports).find((port) => port.dtype !== LENGTH)?.name ?? "";
      throw new BundleError(`arrays must be given by name; the inputs: ${this}`, `run({"${example}": …})`);
    }
    for (const name of Object.keys(given))
      if (!(name in this.ports)) {
        const ends = Object.values(this.ports).filter((port) => port.dtype === LENGTH).map((port) => port.name);
        throw new BundleError(`the model has no input "${name}"; its inputs: ${[this, ...ends].join(", ")}`);
      }
    const arrays = Object.create(null), lengths = new Map(), padded = new Map(), ports = Object.values(this.ports);
    const values = ports.filter((each) => each.dtype !== LENGTH);
    for (const port of values) {
      if (!Object.hasOwn(given, port.name)) throw new BundleError(`the input "${port.name}" is missing; the inputs: ${this}`);
      arrays[port.name] = arrayOf(given[port.name], port.name);
      this.#checkShape(arrays[port.name], port, lengths);
    }
    for (const port of ports.filter((each) => each.dtype === LENGTH)) {
      arrays[port.name] = lengthsOf(port, given, lengths);
      if (Object.hasOwn(given, port.name)) padded.set(port.along, arrays[port.name].data);
    }
    for (const port of values) {
      const array = arrays[port.name];
      arrays[port.name] = { data: cast(array, port, padded), shape: array.shape };
    }
    for (const port of values.filter((each) => each.ends.length)) {
      const counts = port.ends.map((end) => this.#nodesAlong(end, arrays, lengths));
      arrays[port.name].data = fitEnds(arrays[port.name], port, padded.get(port.shape[0]), counts);
    }
    return { arrays, lengths };
  }

  // How many nodes each example has along an axis; null where no input has it.
  #nodesAlong(end, arrays, lengths) {
    const port = Object.values(this.ports).find((each) => each.dtype === LENGTH && each.along === end);
    const full = typeof end === "number" ? end : lengths.get(end);
    return port ? (example) => Number(arrays[port.name].data[example]) : full === undefined ? null : () => full;
  }

  #checkShape(array, port, lengths) {
    const wanted = [BATCH, ...port.shape], found = `[${array.shape.join(", ")}]`;
    if (array.shape.length !== wanted.length)
      throw new BundleError(`"${port.name}" has the shape ${found}; ${port} needs ${wanted.length} axes, examples first`);
    for (const [n, axis] of wanted.entries()) this.#hold(array.shape[n], axis, n, port, found, lengths);
  }

  // How long an array is along an axis, against what the model takes and what other inputs have.
  #hold(length, axis, at, port, found, lengths) {
    if (typeof axis === "number") {
      if (axis !== length)
        throw new BundleError(`"${port.name}" has the shape ${found}; ${port} needs ${axis} where it has ${length} (axis ${at})`);
      return;
    }
    if (!lengths.has(axis)) lengths.set(axis, length);
    if (lengths.get(axis) !== length)
      throw new BundleError(`"${port.name}" has ${length} along "${axis}", but another input has ${lengths.get(axis)}`);
    const longest = this.longest.get(axis);
    if (axis !== BATCH && !(length >= 1 && length <= (longest ?? length))) {
      const limit = longest === undefined ? "at least 1" : `1 to ${longest}`;
      throw new BundleError(`"${port.name}" has ${length} along "${axis}"; the model takes ${limit}`);
    }
  }
}

// An array's values in the type of its port, with zeros where its padding holds what is no value of that. `padded` has
// how long each example is, by axis.
function cast(array, port, padded) {
  const isFloat = port.dtype === "float";
  if (!(isFloat ? "fiub" : "iu").includes(array.kind))
    throw new BundleError(`"${port.name}" holds ${array.dtype}; ${port} needs ${port.kind}`);
  const data = isFloat ? asFloat32(array.data) : array.data;
  const isWrong = port.size === null
    ? (value) => !isFloat ? false : !Number.isFinite(value)
    : (value) => value < 0 || value >= port.size;
  if (!data.some(isWrong)) return isFloat ? data : asInt64(data);
  const isPadding = paddingOf(array.shape, port, padded);
  const first = data.findIndex((value, at) => isWrong(value) && !isPadding(at));
  if (first >= 0) throw new BundleError(`"${port.name}" holds ${describeWrong(data, first, isPadding, array.shape, port)}`);
  const sound = isFloat ? data.slice() : asInt64(data).slice();
  for (const [at, value] of data.entries()) if (isWrong(value)) sound[at] = isFloat ? 0 : 0n;
  return sound;
}

// Edges with zeros for padding; all others are at nodes that their examples have, whose numbers `counts` gives by end.
function fitEnds({ data, shape }, port, ends, counts) {
  const found = data.slice(), size = shape[1];
  for (let at = 0; at < shape[0] * size; at++) {
    const example = Math.floor(at / size), place = at % size;
    const isPadding = ends !== undefined && place >= Number(ends[example]);
    for (const [n, count] of counts.entries()) {
      const node = Number(data[2 * at + n]);
      if (isPadding) found[2 * at + n] = 0n;
      else if (count !== null && !(node >= 0 && node < count(example)))
        throw new BundleError(`"${port.name}" has an edge that ${["begins", "ends"][n]} at ${node}, at [${example}, ${place}]; ` +
          `example ${example} has 0 to ${count(example) - 1} along "${port.ends[n]}"`);
    }
  }
  return found;
}

// Whether a place, counted in the order of memory, lies behind the end of its example.
function paddingOf(shape, port, padded) {
  const axes = [...port.shape.entries()].filter(([, axis]) => padded.has(axis)).map(([n, axis]) => [n + 1, padded.get(axis)]);
  return (at) => {
    const place = placeOf(at, shape);
    return axes.some(([n, ends]) => place[n] >= Number(ends[place[0]]));
  };
}

function placeOf(at, shape) {
  const place = [];
  for (let n = shape.length - 1; n >= 0; n--) {
    place.unshift(at % shape[n]);
    at = Math.floor(at / shape[n]);
  }
  return place;
}

// What is wrong with an array, and the first place where it is.
function describeWrong(data, first, isPadding, shape, port) {
  if (port.size === null) return `values that are infinite or NaN, first at [${placeOf(first, shape).join(", ")}]`;
  const [least, most] = extremes(data.filter((_, at) => !isPadding(at)));
  return `values from ${least} to ${most}; ${port} allows 0 to ${port.size - 1}`;
}

// How long each example is along an axis: between 0 and the axis; left out, all are full.
function lengthsOf(port, given, lengths) {
  const { name } = port, examples = lengths.get(BATCH), longest = lengths.get(port.along);
  if (longest === undefined) throw new BundleError(`"${name}" gives lengths along "${port.along}", which no input has`);
  if (!Object.hasOwn(given, name)) return { data: new BigInt64Array(examples).fill(BigInt(longest)), shape: [examples] };
  const { data, shape, kind } = arrayOf(given[name], name);
  if (shape.length !== 1 || shape[0] !== examples || !"iu".includes(kind))
    throw new BundleError(`"${name}" must be one whole number for each of ${examples} examples`);
  if (examples) {
    const [least, most] = extremes(data);
    if (least < 0 || most > longest)
      throw new BundleError(`"${name}" holds ${least} to ${most}; it must lie between 0 and ${longest}`);
  }
  return { data: asInt64(data), shape: [examples] };
}
