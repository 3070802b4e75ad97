// What a page imports: the module, with the libraries next to it in `vendor`. They are loaded with the first
// bundle.

import { Bundle as Plain } from "./bundle.js";

export { BundleError } from "./errors.js";
export { Port } from "./ports.js";
export { Cache } from "./steps.js";
export { hasPieces, imageInput, wordsInput, wordsReader } from "./preprocess.js";

export class Bundle extends Plain {
  static async load(source, options = {}) {
    const [ort, { sha256 }] = await Promise.all([options.ort ?? import("./vendor/ort.wasm.min.mjs"), import("./vendor/sha2.js")]);
    return super.load(source, { sha256, ...options, ort });
  }
}
