// An input of numbers: a row of them in each line, or nested lists as JSON has them.

import { count, nested } from "./arrays.js";
import { panel } from "./panel.js";

const { element } = globalThis;
const MOST = 6000; // numbers that are written as text

export class NumbersPanel {
  constructor(bundle, port, changed) {
    Object.assign(this, { port, exact: null });
    this.text = element("textarea", { rows: 8, wrap: "off", spellcheck: "false", class: "mono", "aria-label": `${port.name}, numbers`, oninput: () => {
      this.exact = null;
      changed();
    } });
    const orders = ["one number", "numbers, one after another", "a row in each line, or nested lists"];
    const order = orders[port.shape.length] ?? "nested lists";
    this.place = panel(bundle, port, this.text, element("p", { class: "muted" }, order));
  }
  set(array) {
    this.exact = array;
    const shape = array.shape.slice(1);
    this.text.disabled = count(shape) > MOST;
    this.text.value = this.text.disabled ? `${count(shape)} numbers of an example` : textOf(nested(array.data, shape));
  }
  value() {
    return this.exact ?? arrayOf(numbersIn(this.text.value, this.port), this.port);
  }
}

function textOf(values) {
  const isFlat = !Array.isArray(values) || !values.some(Array.isArray);
  const number = (value) => String(+Number(value).toPrecision(6));
  if (isFlat) return [values].flat().map(number).join(", ");
  if (values.every((row) => !row.some(Array.isArray))) return values.map((row) => row.map(number).join(", ")).join("\n");
  return JSON.stringify(values).replaceAll("],[", "],\n[");
}

// Nested lists of numbers, as deep as the port's shape. Throws `SyntaxError`.
function numbersIn(text, port) {
  if (!text.trim()) return null;
  if (text.trim().startsWith("[")) return JSON.parse(text);
  const lines = text.trim().split(/\n+/).map((line) => line.split(/[\s,;]+/).filter(Boolean).map(number));
  const depth = port.shape.length;
  if (depth === 2) return lines;
  const flat = lines.flat();
  return depth === 1 ? flat : depth === 0 && flat.length === 1 ? flat[0] : flat;
}

function number(word) {
  if (!Number.isFinite(Number(word))) throw new SyntaxError(`"${word}" is no number`);
  return Number(word);
}

// One example as the module takes it, in the type of the port where the numbers are such.
function arrayOf(values, port) {
  if (values === null) return null;
  const shape = [], flat = [values].flat(Infinity);
  for (let inner = values; Array.isArray(inner); inner = inner[0]) shape.push(inner.length);
  if (flat.length !== count(shape)) throw new SyntaxError(`the rows of ${port.name} differ in length`);
  if (port.dtype === "float") return { data: Float32Array.from(flat, Number), shape: [1, ...shape] };
  return { data: flat.every(Number.isInteger) ? Int32Array.from(flat) : flat, shape: [1, ...shape] };
}
