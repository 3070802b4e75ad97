// A tree of SVG elements as text.

function escaped(text) {
  return String(text).replace(/[&<>"]/g, (mark) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[mark]);
}

function svgText([tag, attributes, ...children]) {
  const given = Object.entries(attributes).filter(([, value]) => value !== undefined);
  const inside = children.map((child) => (Array.isArray(child) ? svgText(child) : escaped(child))).join("");
  const number = (value) => (typeof value === "number" ? Math.round(value * 100) / 100 : value);
  return `<${tag}${given.map(([name, value]) => ` ${name}="${escaped(number(value))}"`).join("")}>${inside}</${tag}>`;
}
