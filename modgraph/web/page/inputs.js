// A panel for each input, by what the manifest says of it: a picture, words, or else numbers.
//
// A panel has a `port`, a `place` in the page, `value()`, the array that it holds or null, and `set(array)`.

import { BundleError, imageInput } from "../modgraph_web/modgraph.js";
import { ImagePanel } from "./image_panel.js";
import { NumbersPanel } from "./numbers_panel.js";
import { WordsPanel } from "./words_panel.js";

export function panelsOf(bundle, changed) {
  const ports = Object.values(bundle.inputs).filter((port) => port.dtype !== "length");
  return ports.map((port) => new (kindOf(bundle, port))(bundle, port, changed));
}

function kindOf(bundle, port) {
  if (isImage(bundle, port)) return ImagePanel;
  return port.dtype === "token" && port.shape.length === 1 && bundle.manifest.words[port.name] ? WordsPanel : NumbersPanel;
}

// Whether the module can make it of a picture.
export function isImage(bundle, port) {
  if (port.dtype !== "float" || port.shape.length !== 3) return false;
  try {
    imageInput(bundle, port.name, { data: new Uint8ClampedArray(4), width: 1, height: 1 });
    return true;
  } catch (error) {
    if (error instanceof BundleError) return false;
    throw error;
  }
}
