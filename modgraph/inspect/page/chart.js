// Charts that Vega draws from descriptions in Vega-Lite, in the colours of the page.

// Fills the blanks of a description: a text `$name` is a value, and within an expression its literal.
function fill(template, choices) {
  return JSON.parse(JSON.stringify(template), (key, value) => {
    if (typeof value !== "string") return value;
    const whole = /^\$(\w+)$/.exec(value);
    return whole ? choices[whole[1]] : value.replace(/\$(\w+)/g, (blank, name) => JSON.stringify(choices[name]));
  });
}

// The view of a chart in an element of the page. The library runs without eval.
async function drawChart(place, spec, config) {
  await unpack("vega");
  const compiled = vegaLite.compile({ ...spec, config }).spec;
  const view = new vega.View(vega.parse(compiled, null, { ast: true }), { expr: vegaInterpreter, renderer: "svg", tooltip: showTip });
  return view.initialize(place).runAsync();
}

// What the pointer is at, next to it.
function showTip(handler, event, item, text) {
  const tip = document.querySelector("body > .tip") || document.body.appendChild(element("div", { class: "tip", role: "status" }));
  tip.hidden = text === null || text === undefined || text === "";
  if (tip.hidden) return;
  tip.textContent = text;
  tip.style.left = `${Math.max(0, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${event.clientY + 16 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 16}px`;
}

// A chart whose data change: rendered once, then given the new ones.
class LiveChart {
  constructor(spec, config, label) {
    Object.assign(this, { spec, config, place: element("div", { class: "chart", role: "img", "aria-label": label }), view: null, queue: Promise.resolve() });
  }
  // The element of the page, in which the content appears.
  show(content) {
    this.queue = this.queue.then(async () => {
      if (this.view) await this.view.data("content", [content]).runAsync();
      else this.view = await drawChart(this.place, { ...this.spec, data: { name: "content", values: [content] } }, this.config);
    });
    return this.place;
  }
}
