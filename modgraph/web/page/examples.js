// Examples of the run's test data, to click: small pictures, beginnings of texts, or their numbers.

import { hasPieces, wordsReader } from "../modgraph_web/modgraph.js";
import { unpacked } from "./arrays.js";
import { isImage } from "./inputs.js";
import { paint } from "./picture.js";

const { element } = globalThis;
const WORDS = 5;

export function exampleStrip(bundle, { split, examples }, take) {
  if (!examples.length) return null;
  const buttons = examples.map((example, at) => {
    const truth = Object.values(example.truth).join(", ");
    const name = `example ${at + 1}${truth ? `, ${truth}` : ""}`;
    return element("button", { type: "button", class: "example", "aria-pressed": "false", "aria-label": name, title: name, onclick: () => take(example) }, face(bundle, example, at));
  });
  const mark = (taken) => buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(examples[at] === taken)));
  return { mark, place: element("section", { class: "panel examples", "aria-label": "examples" }, element("h2", {}, "Examples ", element("span", { class: "muted" }, `of ${split}`)), element("div", { class: "strip" }, buttons)) };
}

function face(bundle, example, at) {
  const image = Object.values(bundle.inputs).find((port) => isImage(bundle, port));
  if (image) {
    const canvas = element("canvas", { class: "thumbnail" });
    paint(canvas, unpacked(example.inputs[image.name]), bundle, image.name);
    return canvas;
  }
  const words = Object.values(bundle.inputs).find((port) => bundle.manifest.words[port.name] && example.inputs[port.name].shape.length === 2);
  if (!words) return String(at + 1);
  const ids = [...unpacked(example.inputs[words.name]).data], read = wordsReader(bundle, words.name);
  return `${ids.slice(0, WORDS).map(read).join(hasPieces(bundle, words.name) ? "" : " ")}${ids.length > WORDS ? " …" : ""}`;
}
