// For those who install with npm: the module, with the libraries that it depends on.

import { sha256 } from "@noble/hashes/sha2.js";
import * as ort from "onnxruntime-web/wasm";
import { Bundle as Plain } from "./modgraph_web/bundle.js";

export { BundleError } from "./modgraph_web/errors.js";
export { Port } from "./modgraph_web/ports.js";
export { imageInput, wordsInput } from "./modgraph_web/preprocess.js";
export { Cache } from "./modgraph_web/steps.js";

export class Bundle extends Plain {
  static load(source, options = {}) {
    return super.load(source, { sha256, ...options, ort: options.ort ?? ort });
  }
}
