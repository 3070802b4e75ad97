// Arrays as the module takes and gives them: {data, shape}, examples first, of which there is one here.

const TYPES = { float32: Float32Array, int32: Int32Array };

// An array as examples hold it: base64 of its bytes, little end first, as on every machine that has a browser.
export function unpacked({ dtype, shape, data }) {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  return { data: new TYPES[dtype](bytes.buffer), shape };
}

export function count(shape) {
  return shape.reduce((product, axis) => product * axis, 1);
}

// The rows along the last axis.
export function rows({ data, shape }) {
  const width = shape.at(-1);
  return Array.from({ length: width ? data.length / width : 0 }, (_, row) => data.subarray(row * width, (row + 1) * width));
}

export function softmax(values) {
  const most = Math.max(...values), powers = Array.from(values, (value) => Math.exp(value - most));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

// The places of the largest values, the largest first, of equal ones the first.
export function ranked(values, most = values.length) {
  return Array.from(values, (_, at) => at).sort((a, b) => values[b] - values[a] || a - b).slice(0, most);
}

// Rows of numbers, nested as their shape says, without the axis of examples.
export function nested(data, shape) {
  if (!shape.length) return data[0];
  const size = count(shape.slice(1));
  return Array.from({ length: shape[0] }, (_, at) => nested(data.subarray(at * size, (at + 1) * size), shape.slice(1)));
}

export function percent(share) {
  const value = 100 * share;
  return `${value >= 99.95 || value < 0.05 ? Math.round(value) : value.toFixed(1)} %`;
}
