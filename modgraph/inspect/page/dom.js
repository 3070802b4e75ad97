// Elements made from plain values: text is always text.

const SVG = "http://www.w3.org/2000/svg";

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

// A name, which may be broken after its parts.
function breakable(name) {
  return String(name).split(/(?<=[._])/).flatMap((part, at) => (at ? [element("wbr"), part] : [part]));
}

function svgElement([tag, attributes, ...children]) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(name, value);
  for (const child of children) made.append(Array.isArray(child) ? svgElement(child) : String(child));
  return made;
}
