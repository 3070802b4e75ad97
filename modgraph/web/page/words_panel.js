// An input of words, to type. A model that can writes on behind them.

import { hasPieces, wordsInput, wordsReader } from "../modgraph_web/modgraph.js";
import { panel } from "./panel.js";
import { canContinue, Writer } from "./writer.js";

const { element } = globalThis;

export class WordsPanel {
  constructor(bundle, port, changed) {
    Object.assign(this, { bundle, port, exact: null });
    this.text = element("textarea", { rows: 3, spellcheck: "false", autocapitalize: "off", "aria-label": `${port.name}, text`, oninput: () => {
      this.exact = null;
      changed();
    } });
    this.unknown = element("p", { class: "muted unknown", role: "status" });
    this.writer = canContinue(bundle, port) ? new Writer(bundle, port, () => this.value()?.data) : null;
    this.place = panel(bundle, port, this.text, this.unknown, ...(this.writer ? [this.writer.place] : []));
  }
  set(array) {
    this.exact = array;
    this.text.value = Array.from(array.data, Number).map(wordsReader(this.bundle, this.port.name)).join(hasPieces(this.bundle, this.port.name) ? "" : " ");
    this.report([]);
  }
  value() {
    if (this.exact) return this.exact;
    if (!this.text.value.trim()) return this.report([]);
    const { data, shape, unknown } = wordsInput(this.bundle, this.port.name, this.text.value);
    this.report(unknown);
    return { data, shape };
  }
  // Say which words the model does not know.
  report(unknown) {
    const words = [...new Set(unknown)];
    this.unknown.replaceChildren(...(words.length ? ["not in its vocabulary: ", ...words.flatMap((word) => [element("mark", {}, word), " "])] : []));
    return null;
  }
}
