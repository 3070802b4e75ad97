// The ids of a text, and the text of ids, by the tokenizer.json of byte-pair encoding over bytes that a recipe trains.

const PRETOKEN = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;
const known = new WeakMap(); // the ranks of merges, by tokenizer

// Whether this module reads such a tokenizer; others need the package tokenizers, in Python.
export function isReadable(record) {
  const { normalizer = null, pre_tokenizer: pre, model } = record ?? {};
  const isPlain = !model?.unk_token && !model?.continuing_subword_prefix && !model?.end_of_word_suffix && !model?.ignore_merges;
  return normalizer === null && pre?.type === "ByteLevel" && !pre.add_prefix_space && pre.use_regex !== false && model?.type === "BPE" && isPlain;
}

// The ids of the pieces into which a text falls.
export function encode(record, text) {
  if (!known.has(record)) known.set(record, new Map(record.model.merges.map((pair, rank) => [Array.isArray(pair) ? pair.join(" ") : pair, rank])));
  const ranks = known.get(record), { vocab } = record.model, bytes = new TextEncoder();
  return (text.match(PRETOKEN) ?? []).flatMap((word) => merged(Array.from(bytes.encode(word), (byte) => LETTERS[byte]), ranks).map((piece) => vocab[piece]));
}

// A function that gives the text which an id adds to those before. A letter that falls into several pieces comes with the
// last of them.
export function openDecoder({ model, added_tokens: added = [] }) {
  const names = new Map(Object.entries(model.vocab).map(([name, id]) => [id, Uint8Array.from(name, (letter) => BYTES.get(letter))]));
  for (const { id, content } of added) names.set(id, new TextEncoder().encode(content));
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return (id) => decoder.decode(names.get(id), { stream: true });
}

// Merge the pair of the lowest rank, the first of several, until none is left.
function merged(parts, ranks) {
  for (;;) {
    let best = Infinity, at = -1;
    for (let n = 0; n + 1 < parts.length; n++) {
      const rank = ranks.get(`${parts[n]} ${parts[n + 1]}`) ?? Infinity;
      if (rank < best) [best, at] = [rank, n];
    }
    if (at < 0) return parts;
    parts.splice(at, 2, parts[at] + parts[at + 1]);
  }
}

// The letter of each byte: itself where it can be seen, else one from 256 on.
const LETTERS = (() => {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const isSeen = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte !== 0xad);
    return String.fromCodePoint(isSeen ? byte : next++);
  });
})();
const BYTES = new Map(LETTERS.map((letter, byte) => [letter, byte]));
