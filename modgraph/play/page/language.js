// The colours of the language: its words come from the vocabulary, as data.

import { HighlightStyle, StreamLanguage, syntaxHighlighting, tags } from "./codemirror.js";

const STYLES = { constant: "bool", control: "controlKeyword", declaration: "definitionKeyword", graph: "definitionKeyword", type: "typeName", op: "standard", router: "className" };
const TOKENS = { standard: tags.standard(tags.function(tags.name)) };

// The language of specs, or that of printed graphs, which has a few words more.
export function languageOf(words, name = "modgraph") {
  const lists = Object.entries(words).filter(([kind]) => kind !== "graph" || name === "graph").reverse(); // of two kinds, the first counts
  const kinds = new Map(lists.flatMap(([kind, every]) => every.map((word) => [word, STYLES[kind]])));
  return StreamLanguage.define({
    name,
    tokenTable: TOKENS,
    startState: () => ({ depth: 0 }),
    token(stream, state) {
      if (stream.eatSpace()) return null;
      if (stream.match(/^#(?![.#\w]).*/) || (name === "modgraph" && stream.match(/^#.*/))) return "comment";
      if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
      if (stream.match(/^\d+(\.\d+)?([eE][+-]?\d+)?/)) return "number";
      const word = stream.match(/^[\p{L}_]\w*(\.\w+)*/u);
      if (word) return kinds.get(word[0]) ?? null;
      if (stream.match(/^(->|<-|\.\.|\*\*|\/\/|[-+*/%=<>!]=?)/)) return "operator";
      const sign = stream.next();
      state.depth = Math.max(0, state.depth + "({[".includes(sign) - ")}]".includes(sign));
      return "bracket";
    },
    indent: (state, after, context) => context.unit * (state.depth - /^\s*[)}\]]/.test(after)),
    languageData: { commentTokens: { line: "#" }, closeBrackets: { brackets: ["(", "[", "{", '"'] }, indentOnInput: /^\s*[)}\]]$/ },
  });
}

const colour = (name, more = {}) => ({ color: `var(--${name})`, ...more });

export const colours = syntaxHighlighting(HighlightStyle.define([
  { tag: tags.comment, ...colour("muted", { fontStyle: "italic" }) },
  { tag: [tags.string, tags.special(tags.string)], ...colour("string") },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], ...colour("digit") },
  { tag: [tags.keyword, tags.controlKeyword, tags.definitionKeyword], ...colour("word", { fontWeight: "600" }) },
  { tag: tags.standard(tags.function(tags.name)), ...colour("op") },
  { tag: [tags.className, tags.typeName], ...colour("router-word") },
  { tag: [tags.definition(tags.propertyName), tags.propertyName], ...colour("op") },
]));
