// What each route decides: maps over an image, words by their modules, else gates in rows; and how much each module does.

import { colourOf } from "./colours.js";
import { percent } from "./arrays.js";
import { decisionsOf } from "./decisions.js";
import { choiceMaps, gateMaps } from "./maps.js";
import { wordsOf } from "./route_words.js";

const { element } = globalThis;
const MOST_AT_ONCE = 4; // routes; of more, one at a time
const MOST_ROWS = 64, MOST_MAPS = 12;

export class Routes {
  constructor(bundle, record, place, { pick, position }) {
    Object.assign(this, { bundle, place, onPick: pick, position, routes: record.routes, selected: null, module: null, last: null });
    this.charts = new Map(this.routes.map((route) => [route, new LiveChart(route.chart, record.charts.config, "gates of each decision")]));
    place.hidden = !this.routes.length;
    this.body = element("div", { class: "each" });
    this.choose = element("select", { "aria-label": "route", onchange: () => this.pick(this.choose.value, null) },
      this.routes.map((route) => element("option", { value: route.name }, route.name)));
    place.replaceChildren(element("div", { class: "head" }, element("h2", {}, "Routing"), this.isMany ? this.choose : null), this.body);
  }
  get isMany() {
    return this.routes.length > MOST_AT_ONCE;
  }
  // The share of each module by the node of the route, for the graph.
  show(last) {
    this.last = last;
    const decisions = this.routes.map((route) => decisionsOf(route, last.outputs));
    this.decisions = new Map(this.routes.map((route, at) => [route.name, decisions[at]]));
    this.draw();
    return Object.fromEntries(this.routes.map((route, at) => [route.node, decisions[at].use]));
  }
  // Select what a box of the graph is: a route, or a pool whose first route that is, and perhaps a module.
  select(names, module) {
    const route = this.routes.find((each) => names.some((name) => [each.node, each.pool, each.router].includes(name)));
    this.selected = route ? route.name : null;
    this.module = route ? module : null;
    if (route) this.choose.value = route.name;
    if (this.last) this.draw();
    if (route) this.place.querySelector(".route.selected")?.scrollIntoView({ block: "nearest" });
  }
  pick(name, module) {
    const again = this.selected === name && this.module === module;
    [this.selected, this.module] = [name, again ? null : module];
    this.choose.value = name;
    this.draw();
    this.onPick(this.routes.find((route) => route.name === name), this.module);
  }
  draw() {
    const visible = this.isMany ? this.routes.filter((route) => route.name === this.choose.value) : this.routes;
    const focused = document.activeElement?.dataset.module, inside = this.body.contains(document.activeElement) && document.activeElement.closest(".route");
    this.body.replaceChildren(...visible.map((route) => this.section(route)));
    if (inside) this.body.querySelector(`[data-route="${CSS.escape(inside.dataset.route)}"] [data-module="${focused}"]`)?.focus();
  }
  section(route) {
    const decisions = this.decisions.get(route.name), isSelected = this.selected === route.name;
    const names = Array.from({ length: route.modules }, (_, module) => `${route.pool.split(".").pop()}.${module}`);
    return element("section", { class: `panel route${isSelected ? " selected" : ""}`, "data-route": route.name },
      element("h3", {}, element("button", { type: "button", class: "link", "data-module": "", title: "display it in the graph", onclick: () => this.pick(route.name, null) }, route.name)),
      element("p", { class: "muted" }, `${route.pool} by ${rounded(route.decides)}`),
      this.picture(route, decisions, names, isSelected ? this.module : null), this.bars(route, decisions, names, isSelected ? this.module : null));
  }
  bars(route, { use, selects }, names, selected) {
    const row = (name, module) => {
      const bar = element("i");
      bar.style.width = `${100 * use[module]}%`;
      bar.style.background = colourOf(module, route.modules);
      return element("button", { type: "button", class: "module", "data-module": module, "aria-pressed": String(selected === module), onclick: () => this.pick(route.name, module) },
        element("span", {}, name), element("span", { class: "meter" }, bar), element("span", { class: "numeric mono" }, percent(use[module])));
    };
    const title = selects ? "share of choices" : "share of gates";
    return element("div", { class: "modules", role: "group", "aria-label": title }, element("p", { class: "muted" }, title), names.map(row));
  }
  picture(route, decisions, names, selected) {
    const { gates, choices, selects } = decisions, { places } = route;
    if (route.modules === 1) return null;
    if (places) {
      const image = this.last.inputs[places.image];
      const maps = selects ? choiceMaps(this.bundle, route, image, choices, selected) : [];
      const each = names.length <= MOST_MAPS && (!selects || selected !== null) ? gateMaps(this.bundle, route, image, gates, names, selected) : [];
      const note = selects && selected === null ? null : element("p", { class: "muted" }, "the stronger the colour, the larger the gate");
      return element("div", {}, element("div", { class: "maps" }, maps, each), note);
    }
    if (route.words) return wordsOf(this.bundle, route, this.last.inputs[route.words], decisions, selected, (at) => this.position(this.axisOf(route), at));
    if (gates.length < 2 || gates.length > MOST_ROWS) return null;
    const columns = gates.map((_, at) => String(at)), values = names.map((_, module) => gates.map((row) => Math.max(0, row[module])));
    return element("figure", { class: "wide" }, this.charts.get(route).show({ rows: names, columns, values }), element("figcaption", {}, "gates of each decision"));
  }
  axisOf(route) {
    return this.bundle.inputs[route.words].shape[0];
  }
}

// Settings as they are written, numbers without the digits that nobody reads.
function rounded(text) {
  return text.replace(/\d+\.\d{5,}/g, (number) => String(+Number(number).toPrecision(4)));
}
