// A tree of SVG elements as text.

// Characters that XML does not allow become U+FFFD.
const INVALID = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

function escaped(text) {
  const valid = String(text).replace(INVALID, "\ufffd");
  return valid.replace(/[&<>"]/g, (mark) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[mark]);
}

function svgText([tag, attributes, ...children]) {
  const given = Object.entries(attributes).filter(([, value]) => value !== undefined);
  const inside = children.map((child) => (Array.isArray(child) ? svgText(child) : escaped(child))).join("");
  const number = (value) => (typeof value === "number" ? Math.round(value * 100) / 100 : value);
  return `<${tag}${given.map(([name, value]) => ` ${name}="${escaped(number(value))}"`).join("")}>${inside}</${tag}>`;
}
