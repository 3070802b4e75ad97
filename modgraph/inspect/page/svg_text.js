// A tree of SVG elements as text.

// What XML has no way to say is shown as such.
const UNSAID = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

function escaped(text) {
  const said = String(text).replace(UNSAID, "\ufffd");
  return said.replace(/[&<>"]/g, (mark) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[mark]);
}

function svgText([tag, attributes, ...children]) {
  const given = Object.entries(attributes).filter(([, value]) => value !== undefined);
  const inside = children.map((child) => (Array.isArray(child) ? svgText(child) : escaped(child))).join("");
  const number = (value) => (typeof value === "number" ? Math.round(value * 100) / 100 : value);
  return `<${tag}${given.map(([name, value]) => ` ${name}="${escaped(number(value))}"`).join("")}>${inside}</${tag}>`;
}
