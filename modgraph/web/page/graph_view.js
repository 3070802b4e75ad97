// The folded graph next to the model: its pools display what each module does, a click on one selects its route.

import { colourOf } from "./colours.js";
import { load } from "./libraries.js";

const { element, ancestors, annotate, drawing, isGroup, svgElement } = globalThis;
let engine = null;

// The layout library, loaded when the page is at rest: it is wanted where something folds.
globalThis.layouter = () => (engine ??= load("elk").then(() => new globalThis.ELK()));

export class GraphView {
  constructor(record, pick) {
    Object.assign(this, { root: document.body, pick, pools: new Map(record.routes.map((route) => [route.pool, route.modules])) });
    this.pane = new Pane(this, record.graph, 0);
    this.draw();
    for (const [name, act] of [["in", () => this.pane.view.zoom(1.3)], ["out", () => this.pane.view.zoom(1 / 1.3)], ["fit", () => this.pane.view.fit()]])
      this.root.querySelector(`[data-do=${name}]`).addEventListener("click", act);
    new MutationObserver(() => this.paint()).observe(this.pane.svg, { childList: true });
    new ResizeObserver(() => this.pane.view.fit(true)).observe(this.pane.canvas);
    this.pane.svg.addEventListener("click", (event) => this.clicked(event));
    setTimeout(globalThis.layouter, 300);
  }
  // Draw it anew where everything is.
  draw() {
    const { pane } = this, focus = document.activeElement?.closest?.(".box")?.dataset.id;
    pane.svg.replaceChildren(svgElement(drawing(pane.index, pane.state, pane.positions)));
    pane.view.show(true);
    pane.settle();
    if (focus) pane.focus(focus);
  }
  // The share of each module by route, in the boxes of routes and pools.
  show(loads) {
    const { index } = this.pane;
    for (const box of index.order) delete box.load;
    annotate(index, { loads });
    this.draw();
  }
  // Bars and strands in the colours of their modules.
  paint() {
    const { index } = this.pane;
    for (const part of this.pane.svg.querySelectorAll("[data-module]")) {
      const holder = part.closest(".box")?.dataset.id ?? part.dataset.target;
      const colour = colourOf(Number(part.dataset.module), index.boxes.get(holder).load?.length ?? 1);
      if (part.classList.contains("strand")) part.style.stroke = colour;
      else if (part.classList.contains("load")) part.style.fill = colour;
    }
  }
  clicked(event) {
    this.module = event.target.dataset?.module === undefined ? null : Number(event.target.dataset.module);
    if (this.module !== null) this.pick(this.names, this.module);
  }
  select(route) {
    this.quiet = true;
    const visible = [route.node, route.pool].filter((id) => this.pane.positions.boxes[id]);
    return this.pane.select(visible.length ? visible : [route.node], { reveal: true }).finally(() => (this.quiet = false));
  }
  // ------------------------------------------------------------ what a pane asks of its page
  selected(pane, ids) {
    if (this.quiet) return;
    this.names = ids.flatMap((id) => [id, ...ancestors(pane.index, id).map((box) => box.id), ...inside(pane.index.boxes.get(id))]);
    this.pick(this.names, null);
  }
  fold(pane, id, open) {
    return pane.fold(id, open);
  }
  followed() {}
  tab() {}
}

function inside(box) {
  return isGroup(box) ? box.children.flatMap((child) => [child.id, ...inside(child)]) : [];
}
