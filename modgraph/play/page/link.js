// A link holds the whole work in its fragment, which no server sees. What it says is data, and is checked as such.

const KEY = "work=", VERSION = 1;
const LARGEST = { link: 1_000_000, text: 2_000_000, files: 64, values: 256, value: 1000 }; // characters, bytes, number
const NAME = /^(?!.*(^|\/)\.)[\p{L}\p{N}_][\p{L}\p{N}_ ./-]{0,160}\.(mod|ya?ml)$/u; // no part begins with a dot

export class DamagedLink extends Error {}

export const isName = (name) => typeof name === "string" && NAME.test(name) && !name.includes("//");

export const plainWork = ({ files, active, values, pinned }) => ({ version: VERSION, files: [...files], active, values: [...values], ...plainPin(pinned) });
const plainPin = (pinned) => (pinned ? { pinned: { text: pinned.text, values: Object.entries(pinned.parameters) } } : {});

export async function packLink(work) {
  const packed = await collect(new Blob([JSON.stringify(plainWork(work))]).stream().pipeThrough(new CompressionStream("deflate-raw")));
  const binary = Array.from(packed, (byte) => String.fromCharCode(byte)).join("");
  return KEY + btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

// The work of a fragment; null where it has none. Raises `DamagedLink`.
export async function unpackLink(fragment) {
  const text = fragment.replace(/^#/, "");
  if (!text.startsWith(KEY)) return null;
  if (text.length > LARGEST.link) throw new DamagedLink("it is too long");
  return checkWork(await decode(text.slice(KEY.length)));
}

async function decode(text) {
  try {
    const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const packed = new Blob([Uint8Array.from(binary, (each) => each.charCodeAt(0))]).stream();
    const content = await collect(packed.pipeThrough(new DecompressionStream("deflate-raw")));
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(content));
  } catch (error) {
    throw error instanceof DamagedLink ? error : new DamagedLink("a part of it is missing or changed");
  }
}

// All bytes of a stream, as long as they are not too many: few bytes may unpack to very many.
async function collect(stream) {
  const parts = [];
  let size = 0;
  for (let reader = stream.getReader(), part; !(part = await reader.read()).done; ) {
    size += part.value.length;
    if (size > LARGEST.text) {
      await reader.cancel();
      throw new DamagedLink("its texts are too large");
    }
    parts.push(part.value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

// Take only what is expected from parsed JSON. Raises `DamagedLink`.
export function checkWork(found) {
  const files = checkPairs(found?.files, LARGEST.files, isName, (text) => typeof text === "string");
  const values = checkValues(found?.values);
  if (found.version !== VERSION) throw new DamagedLink("another version of the playground made it");
  if (!files.size) throw new DamagedLink("it holds no file");
  return { files, values, active: files.has(found.active) ? found.active : [...files.keys()][0], pinned: checkPin(found.pinned) };
}

// A state to compare with, where there is one. What it costs is asked when it is to be seen.
function checkPin(pinned) {
  if (pinned === undefined) return null;
  if (typeof pinned?.text !== "string") throw new DamagedLink("the state that it pins has no text");
  return { text: pinned.text, parameters: Object.fromEntries(checkValues(pinned.values)) };
}

const checkValues = (pairs) => checkPairs(pairs, LARGEST.values, (name) => /^\w{1,80}$/u.test(name), isValue);

function checkPairs(pairs, most, isKey, isRight) {
  const isPair = (pair) => Array.isArray(pair) && pair.length === 2 && typeof pair[0] === "string" && isKey(pair[0]) && isRight(pair[1]);
  if (!Array.isArray(pairs) || pairs.length > most || !pairs.every(isPair)) throw new DamagedLink("it holds something else than files and parameters");
  return new Map(pairs);
}

// The value of a parameter, as one writes it: 3, 0.5, true, "sum".
const isValue = (value) => typeof value === "string" && value.length <= LARGEST.value;
