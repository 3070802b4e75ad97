// Whether a bundle is as it was exported: the digest that it ends in.
//
// The trailer has a fixed length: an entry of the model's metadata, `modgraph.sha256`, with the SHA-256 of all bytes
// before it. It finds damage, not intent: who changes a file on purpose can write a digest too.

const DIGITS = 64;
const KEY = "modgraph.sha256";
const ENTRY = bytesOf("\x0a", String.fromCharCode(KEY.length), KEY, "\x12", String.fromCharCode(DIGITS));
const START = bytesOf("\x72", String.fromCharCode(ENTRY.length + DIGITS), String.fromCharCode(...ENTRY));
const LENGTH = START.length + DIGITS;

const PRODUCER = bytesOf("\x12\x08modgraph"); // ModelProto: producer_name = 2
const HEAD = 32; // bytes among which it is
const MANIFEST_ENTRY = bytesOf("\x0a\x08modgraph\x12");

const NO_BUNDLE = ["is no bundle: modgraph has not exported it", "write one: modgraph export RUN -o model.onnx"];
const NO_DIGEST = ["has no digest: it was cut off or changed",
  "export it again, or open it unchecked (check: false)"];
const CHANGED = ["is damaged: its bytes have changed since the export", "copy or export it again"];

function bytesOf(...texts) {
  return Uint8Array.from(texts.join(""), (letter) => letter.charCodeAt(0));
}

// What is wrong with a bundle's bytes, [reason, way out], or null.
export async function damageOf(content, sha256) {
  const end = content.subarray(Math.max(0, content.length - LENGTH));
  if (startsWith(end, START)) {
    const digest = await digestOf(content.subarray(0, content.length - LENGTH), sha256);
    return digest === String.fromCharCode(...end.subarray(START.length)) ? null : CHANGED;
  }
  return holds(content.subarray(0, HEAD), PRODUCER) || holds(content, MANIFEST_ENTRY) ? NO_DIGEST : NO_BUNDLE;
}

// In hexadecimal digits. Browsers have a digest of their own on pages that came by https or from the same machine; on
// all others it is computed by `sha256`.
export async function digestOf(content, sha256) {
  const subtle = globalThis.crypto?.subtle;
  const digest = subtle ? new Uint8Array(await subtle.digest("SHA-256", content)) : sha256(content);
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function startsWith(bytes, start, at = 0) {
  return at + start.length <= bytes.length && start.every((byte, n) => bytes[at + n] === byte);
}

function holds(bytes, wanted) {
  for (let at = bytes.indexOf(wanted[0]); at !== -1; at = bytes.indexOf(wanted[0], at + 1))
    if (startsWith(bytes, wanted, at)) return true;
  return false;
}
