// Texts to read: in an editor of their own, or line by line.

import { readOnly } from "./editor.js";

const { element } = globalThis;

// A text in an editor that colours it, and searches in it.
export class TextView {
  constructor(place, language, label) {
    const host = element("div", { class: "text" });
    place.append(host);
    this.view = readOnly(host, language, label);
  }
  draw(text) {
    const { state, scrollDOM } = this.view;
    if (state.doc.toString() === text) return;
    const { scrollTop } = scrollDOM;
    this.view.dispatch({ changes: { from: 0, to: state.doc.length, insert: text } });
    scrollDOM.scrollTop = scrollTop;
  }
}

// The lines of a comparison, coloured by the sign that each begins with.
export function colourLines(text) {
  const kinds = { "+": "plus", "-": "minus", "~": "change", ">": "change" };
  return element("pre", { class: "prose" }, text.split("\n").map((line) => element("span", { class: kinds[line.trimStart()[0]] }, `${line}\n`)));
}
