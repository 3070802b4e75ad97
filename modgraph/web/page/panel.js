// The frame of an input's panel: its name, its type, how it is to be made.

const { element } = globalThis;

export function panel(bundle, port, ...content) {
  const how = bundle.manifest.preprocessing[port.name];
  const description = typeof how === "string" ? how : how?.words ?? "";
  return element("section", { class: "panel input", "data-input": port.name },
    element("h2", {}, port.name, element("span", { class: "muted mono" }, ` ${port}`)),
    ...content, description ? element("p", { class: "muted" }, description) : null);
}
