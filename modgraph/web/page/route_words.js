// Words in the colours of the modules that compute them.

import { hasPieces, wordsReader } from "../modgraph_web/modgraph.js";
import { percent } from "./arrays.js";
import { colourOf } from "./colours.js";

const { element } = globalThis;

// A click on a word reports its place.
export function wordsOf(bundle, route, { data }, { gates, choices, selects }, selected, report) {
  const isKnown = Boolean(bundle.manifest.words[route.words]), read = isKnown ? wordsReader(bundle, route.words) : String;
  const word = (id, at) => {
    const row = gates[at], module = (selects ? choices[at][0] : undefined) ?? row.indexOf(Math.max(...row));
    const name = read(id), isDim = selected !== null && selected !== module;
    const mark = element("sub", {}, String(module));
    const made = element("button", { type: "button", class: `word${isDim ? " dim" : ""}`, title: `${name}: module ${module}, gate ${percent(row[module])}`,
      "aria-label": `${name}, module ${module}`, "data-at": at, onclick: () => report(at) }, name, mark);
    made.style.borderBottomColor = colourOf(module, route.modules);
    made.style.background = `color-mix(in srgb, ${colourOf(module, route.modules)} 22%, transparent)`;
    return made;
  };
  return element("p", { class: isKnown && hasPieces(bundle, route.words) ? "words pieces" : "words" }, Array.from(data, Number).map(word));
}
