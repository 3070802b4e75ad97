// Inputs made of pictures and texts, as the manifest's `preprocessing` says that those were which the model learnt from.

import { BundleError } from "./errors.js";
import { encode, isReadable, openDecoder } from "./tokenizer.js";

const GREY = "grey", COLOURS = "red, green, blue";
const LUMINANCE = [0.299, 0.587, 0.114];
const LIGHT = 0.5; // a border that is lighter is that of a picture on a light ground
const AGAIN = "export it again with a newer modgraph, or give the numbers yourself";

// An image [1, C, H, W] made of a picture of any size: {data, width, height}, an ImageData or the like, its pixels row by
// row in grey, RGB or RGBA, as bytes or as fractions from 0 to 1. What is transparent is white.
//
// Where models know things that are light on a dark ground, a picture with a light border is inverted, or what `invert`
// says. It is stretched to the model's size, smoothly as in training. Throws `BundleError`.
export function imageInput(bundle, name, picture, { invert } = {}) {
  const port = portOf(bundle, name), how = imageFacts(port, bundle.manifest.preprocessing?.[name]);
  const [channels, height, width] = port.shape, size = height * width;
  let planes = planesOf(picture, name);
  if (how.channels === GREY) planes = [greyOf(planes)];
  else if (planes.length === 1) planes = [planes[0], planes[0], planes[0]];
  if (invert ?? (how.ground === "dark" && borderOf(planes, picture) > LIGHT)) planes = planes.map((plane) => plane.map((light) => 1 - light));
  const data = new Float32Array(channels * size), small = planes.map((plane) => resized(plane, picture, { width, height }));
  for (let channel = 0; channel < channels; channel++) {
    const mean = how.mean[channel % how.mean.length], deviation = how.deviation[channel % how.deviation.length];
    const plane = small[channel % small.length];
    for (let at = 0; at < size; at++) data[channel * size + at] = (plane[at] - mean) / deviation;
  }
  return { data, shape: [1, channels, height, width] };
}

// Tokens [1, T] made of a text: {data, shape, words, unknown}, the ids of the `words` that the text falls into, and those
// of them that the model does not know. Throws `BundleError`.
export function wordsInput(bundle, name, text) {
  const port = portOf(bundle, name), how = bundle.manifest.preprocessing?.[name], known = bundle.manifest.words?.[name];
  const isToken = port.dtype === "token" && port.shape.length === 1 && Array.isArray(known);
  if (isToken && how?.split === "tokenizer") {
    if (!isReadable(how.tokenizer)) throw new BundleError(`the tokenizer of "${name}" is not byte-pair encoding over bytes alone`, "encode texts in Python, and give the ids");
    const ids = encode(how.tokenizer, text);
    return { data: Int32Array.from(ids), shape: [1, ids.length], words: ids.map((id) => known[id]), unknown: [] };
  }
  if (!isToken || !["blanks", "signs"].includes(how?.split))
    throw new BundleError(`the bundle does not describe how to make "${name}", ${port}, from a text`, AGAIN);
  const ids = new Map(known.map((word, id) => [word, id])), other = ids.get(how.unknown);
  if (other === undefined) throw new BundleError(`"${name}" has no word for unknown words`);
  const words = tokensOf(text, how), keys = words.map((word) => (how.letters ? [...word].slice(-how.letters).join("") : word));
  const data = Int32Array.from(keys, (word) => ids.get(word) ?? other);
  return { data, shape: [1, words.length], words, unknown: words.filter((_, n) => !ids.has(keys[n])) };
}

// Whether an input takes pieces of words, which contain the blanks between words.
export function hasPieces(bundle, name) {
  return bundle.manifest.preprocessing?.[name]?.split === "tokenizer";
}

// A function that gives the text of an id, in the order of a text: of pieces, with a letter that falls into several at the
// last of them; of words, the word.
export function wordsReader(bundle, name) {
  const how = bundle.manifest.preprocessing?.[name], known = bundle.manifest.words[name];
  return hasPieces(bundle, name) && isReadable(how.tokenizer) ? openDecoder(how.tokenizer) : (id) => known[id];
}

function portOf(bundle, name) {
  if (!(name in bundle.inputs)) throw new BundleError(`the model has no input "${name}"`);
  return bundle.inputs[name];
}

// What the manifest says of an input that is an image, with defaults. Throws `BundleError`.
function imageFacts(port, how) {
  const [channels, ...size] = port.shape, fit = { [GREY]: true, [COLOURS]: channels === 3 };
  const isImage = port.dtype === "float" && size.length === 2 && port.shape.every(Number.isInteger);
  if (!isImage || !fit[how?.channels])
    throw new BundleError(`the bundle does not describe how to make "${port.name}", ${port}, from a picture`, AGAIN);
  const { mean = [0], deviation = [1], ground } = how;
  const isScale = (list) => Array.isArray(list) && [1, channels].includes(list.length) && list.every(Number.isFinite);
  if (!isScale(mean) || !isScale(deviation) || deviation.includes(0))
    throw new BundleError(`the bundle tells a scale of "${port.name}" that does not fit ${port}`);
  return { channels: how.channels, mean, deviation, ground };
}

// The light of a picture from 0 to 1: one plane, or three. Throws `BundleError`.
function planesOf({ data, width, height }, name) {
  const size = width * height, depth = data.length / size, most = data instanceof Uint8Array || data instanceof Uint8ClampedArray ? 255 : 1;
  if (!(size > 0) || ![1, 3, 4].includes(depth))
    throw new BundleError(`the picture for "${name}" has ${data.length} values; ${width} × ${height} pixels have 1, 3 or 4 each`);
  const plane = (channel) => Float32Array.from({ length: size }, (_, at) => {
    const light = data[at * depth + channel] / most, alpha = depth === 4 ? data[at * depth + 3] / most : 1;
    return Math.min(1, Math.max(0, alpha * light + 1 - alpha));
  });
  return depth === 1 ? [plane(0)] : [plane(0), plane(1), plane(2)];
}

function greyOf(planes) {
  return planes.length === 1 ? planes[0] : planes[0].map((_, at) => LUMINANCE.reduce((sum, share, channel) => sum + share * planes[channel][at], 0));
}

// The mean light along a picture's border.
function borderOf(planes, { width, height }) {
  let sum = 0, count = 0;
  for (const plane of planes)
    plane.forEach((light, at) => {
      const x = at % width, y = (at - x) / width;
      if (x > 0 && y > 0 && x < width - 1 && y < height - 1) return;
      sum += light;
      count++;
    });
  return sum / count;
}

// A plane in another size, each pixel a mean of those around its place, the nearer the more (a triangle, as wide as a
// pixel of the coarser size on both sides): what is called bilinear with antialiasing.
function resized(plane, from, to) {
  const columns = sharesOf(from.width, to.width), rows = sharesOf(from.height, to.height);
  const narrow = new Float32Array(from.height * to.width), found = new Float32Array(to.height * to.width);
  for (let y = 0; y < from.height; y++)
    columns.forEach(({ first, shares }, x) => {
      narrow[y * to.width + x] = shares.reduce((sum, share, n) => sum + share * plane[y * from.width + first + n], 0);
    });
  rows.forEach(({ first, shares }, y) => {
    for (let x = 0; x < to.width; x++)
      found[y * to.width + x] = shares.reduce((sum, share, n) => sum + share * narrow[(first + n) * to.width + x], 0);
  });
  return found;
}

// Of which pixels of an axis each pixel of another size is made, and in which shares.
function sharesOf(from, to) {
  const scale = from / to, reach = Math.max(1, scale);
  return Array.from({ length: to }, (_, n) => {
    const middle = (n + 0.5) * scale, first = Math.max(0, Math.trunc(middle - reach + 0.5));
    const count = Math.min(from, Math.trunc(middle + reach + 0.5)) - first;
    const near = Array.from({ length: count }, (_, m) => Math.max(0, 1 - Math.abs(first + m + 0.5 - middle) / reach));
    const whole = near.reduce((sum, share) => sum + share, 0);
    return { first, shares: near.map((share) => share / whole) };
  });
}

// Blanks and letters are what Python takes for them.
const BLANKS = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/u;
const WORD_OR_SIGN = /[\p{L}\p{Nl}\p{No}]+(?:['-][\p{L}\p{Nl}\p{No}]+)*|./gsu;

// The words of a text. Lines but the last end in the word for that, if there is one.
function tokensOf(text, { split, lower, end, unknown }) {
  const lines = (lower ? text.toLowerCase() : text).replaceAll("\r\n", "\n").split("\n");
  const parts = (piece) => (split === "blanks" || piece === end || piece === unknown ? [piece] : piece.match(WORD_OR_SIGN));
  return lines.flatMap((line, n) => [
    ...line.split(BLANKS).filter(Boolean).flatMap(parts),
    ...(end && n < lines.length - 1 ? [end] : []),
  ]);
}
