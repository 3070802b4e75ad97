// A slider or a field for each parameter of the model. The worker gets their values as `-s name=value` gives them.

const { element } = globalThis;

export class Parameters {
  constructor(place, work) {
    Object.assign(this, { place, work, list: place.querySelector(".sliders"), count: place.querySelector("summary .muted"), known: "", parameters: [] });
    this.list.addEventListener("input", ({ target }) => this.changed(target));
  }
  // The fields stay, with focus and cursor, while the model has the same parameters.
  show(parameters) {
    this.place.hidden = !parameters.length;
    const known = JSON.stringify(parameters);
    if (known !== this.known) this.list.replaceChildren(...parameters.map((each) => field(each)), element("button", { type: "button", class: "reset", onclick: () => this.work.reset() }, "Reset"));
    Object.assign(this, { known, parameters });
    this.settle();
  }
  changed(input) {
    const { name } = input.dataset, value = input.type === "checkbox" ? String(input.checked) : input.value.trim();
    this.work.set(name, value === "" || value === this.usual(name) ? null : value);
  }
  usual(name) {
    return this.parameters.find((each) => each.name === name).text;
  }
  // Bring all fields to the values in force, except the one that is being written.
  settle() {
    for (const input of this.list.querySelectorAll("[data-name]")) {
      const { name } = input.dataset, value = this.work.values.get(name) ?? this.usual(name);
      if (input.type === "checkbox") input.checked = value === "true";
      else if (input.type === "range" || input !== document.activeElement) input.value = value;
      input.closest(".field").classList.toggle("own", this.work.values.has(name));
    }
    const { size } = this.work.values, reset = this.list.querySelector(".reset");
    this.count.textContent = size ? `${size} changed` : "";
    if (reset) reset.hidden = !size;
  }
}

function field({ name, kind, text, minimum, maximum, step }) {
  const label = element("span", { title: `${name} = ${text}` }, name);
  if (text === "true" || text === "false") return element("label", { class: "field" }, label, element("input", { type: "checkbox", "data-name": name }));
  const input = element("input", { type: "text", "data-name": name, spellcheck: "false", autocomplete: "off", "aria-label": name });
  if (minimum === undefined || minimum === null) return element("div", { class: "field" }, label, input);
  const slider = element("input", { type: "range", "data-name": name, "aria-label": `${name}, ${kind}`, min: minimum, max: maximum, step });
  return element("div", { class: "field number" }, label, slider, input);
}
