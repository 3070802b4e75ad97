// The manifest among the metadata of an ONNX file, which ONNX Runtime for the web does not give.
//
// An ONNX file is a ModelProto, a protocol buffer: fields, each a number and a wire type, then what the wire type says.
// Only `metadata_props = 14`, entries of `key = 1` and `value = 2`, is looked into; all else is stepped over.

const METADATA = 14, KEY = 1, VALUE = 2;
const VARINT = 0, EIGHT_BYTES = 1, COUNTED = 2, FOUR_BYTES = 5;

// The text under a key of a model's metadata, the last one as in ONNX Runtime; null if there is none.
//
// Throws `RangeError` where the bytes are no protocol buffer, `TypeError` where the text is not UTF-8.
export function metadataOf(content, wanted) {
  let found = null;
  for (const [field, entry] of fieldsOf(content)) {
    if (field !== METADATA || entry === null) continue;
    const pair = new Map(fieldsOf(entry));
    if (textOf(pair.get(KEY)) === wanted) found = pair.get(VALUE) ?? new Uint8Array();
  }
  return found === null ? null : new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(found);
}

function textOf(bytes) {
  return bytes ? new TextDecoder().decode(bytes) : "";
}

// The fields of a message, [number, bytes], without the bytes (null) where they are no text and no message.
function* fieldsOf(bytes) {
  for (let at = 0; at < bytes.length; ) {
    const [tag, content] = varint(bytes, at);
    const wire = tag % 8, field = Math.floor(tag / 8);
    if (field === 0) throw new RangeError("a field has the number 0");
    const [start, end] = extent(bytes, content, wire);
    if (end > bytes.length) throw new RangeError("a field goes on beyond the end");
    yield [field, wire === COUNTED ? bytes.subarray(start, end) : null];
    at = end;
  }
}

// Where the content of a field begins and ends.
function extent(bytes, at, wire) {
  if (wire === VARINT) return [at, varint(bytes, at)[1]];
  if (wire === EIGHT_BYTES) return [at, at + 8];
  if (wire === FOUR_BYTES) return [at, at + 4];
  if (wire !== COUNTED) throw new RangeError("a field has an unknown wire type");
  const [length, start] = varint(bytes, at);
  return [start, start + length];
}

// A number in base 128, the lowest digits first, and where it ends. Past 2^53 it is not exact, and no length is as large.
function varint(bytes, at) {
  let value = 0;
  for (let n = 0; n < 10; n++) {
    if (at + n >= bytes.length) throw new RangeError("a number is cut off");
    const byte = bytes[at + n];
    value += (byte & 127) * 2 ** (7 * n);
    if (byte < 128) return [value, at + n + 1];
  }
  throw new RangeError("a number is too long");
}
