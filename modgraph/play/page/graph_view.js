// The graph, rendered by the scripts of modgraph's other pages. It keeps its unfolding and its view while the text changes.

const { annotate, firstState, indexed, panelOf, overviewOf } = globalThis;
const FIRST_BOXES = 60; // boxes unfolded at first, approximately, as long as they can be read
const NOTHING = { scene: { name: "", boxes: [], edges: [] }, sources: [], state: { open: [], all: [] }, positions: { width: 1, height: 1, boxes: {}, edges: [] } };
let layouts = null;

// The layout library, which runs in a worker of its own.
globalThis.layouter = () => (layouts ??= startLayouts());

function startLayouts() {
  const worker = new Worker("page/layouts.js"), waiting = new Map();
  let count = 0;
  const refuse = (id, reason) => waiting.get(id).reject(new Error(reason));
  worker.addEventListener("message", ({ data: { id, positions, error } }) => {
    if (error) refuse(id, error);
    else waiting.get(id).resolve(positions);
    waiting.delete(id);
  });
  worker.addEventListener("error", () => {
    layouts = null; // the next drawing starts another
    for (const id of waiting.keys()) refuse(id, "the layout has failed");
  });
  return {
    layout: (graph) => new Promise((resolve, reject) => {
      waiting.set(++count, { resolve, reject });
      worker.postMessage({ id: count, graph });
    }),
  };
}

class LivePane extends Pane {
  constructor(app, at) {
    super(app, NOTHING, at);
    Object.assign(this, { isMoved: false, source: { mark() {} } }); // the editor is the source
    this.svg.addEventListener("wheel", () => (this.isMoved = true), { passive: true });
    this.svg.addEventListener("pointermove", (event) => (this.isMoved ||= event.buttons > 0));
    new ResizeObserver(() => this.isMoved || this.view.fit(true)).observe(this.canvas);
  }
  // Draw another graph; boxes of the same id stay folded or unfolded, and selected.
  async update(data) {
    this.queue = this.queue.catch(() => {}).then(() => this.swap(data)); // after a layout that is under way, or has failed
    await this.redraw(this.selected[0]);
    if (this.isOther) await this.fitFolds();
    if (!this.isMoved) this.view.fit(true);
  }
  swap(data) {
    const before = this.index, first = firstState(data.scene, FIRST_BOXES), isOther = before.scene.name !== data.scene.name;
    Object.assign(this, { data, index: indexed(data.scene), layouts: new Map(), isOther });
    annotate(this.index, data);
    const isIn = (old, fresh, id) => (isOther || !before.boxes.has(id) ? fresh.has(id) : old.has(id));
    const keep = (old, fresh) => new Set([...this.index.boxes.keys()].filter((id) => isIn(old, fresh, id)));
    this.state = { ...this.state, open: keep(this.state.open, first.open), all: keep(this.state.all, first.all) };
    this.selected = this.selected.filter((id) => this.index.boxes.has(id));
    if (isOther) this.isMoved = false;
  }
  toSource({ lines }) {
    this.app.toLine(lines.source, lines.first, true);
  }
  // Begin at the first change of a comparison, large enough to read.
  showFirstMark() {
    const first = this.index.order.find((box) => box.mark);
    if (!first || this.isMoved) return;
    this.isMoved = true;
    this.select([first.id], { reveal: true, quiet: true }).then(() => this.centre(this.selected[0]));
  }
  fit() {
    this.isMoved = false;
    this.view.fit(true);
  }
}

// One graph, or the two of a comparison, in a place of the page. `toLine` displays a line of a file.
export class GraphView {
  constructor(root, toLine) {
    Object.assign(this, { root, toLine, panel: root.querySelector(".panel") });
    this.panes = [...root.querySelectorAll(".pane")].map((_, at) => new LivePane(this, at));
    const acts = { in: (pane) => pane.view.zoom(1.3), out: (pane) => pane.view.zoom(1 / 1.3), fit: (pane) => pane.fit(), fold: (pane) => pane.foldAll(), unfold: (pane) => pane.unfoldAll() };
    for (const [name, act] of Object.entries(acts))
      root.querySelectorAll(`[data-do=${name}]`).forEach((button) => button.addEventListener("click", () => this.panes.forEach(act)));
  }
  async draw(every) {
    await Promise.all(this.panes.map((pane, at) => pane.update(every[at])));
    this.selected(this.panes[0], this.panes[0].selected, true);
  }
  // ------------------------------------------------------------ what a pane asks of its page
  selected(pane, ids, quiet) {
    const choose = (id) => pane.select([id], { reveal: true }), box = pane.index.boxes.get(ids[0]);
    this.panel?.replaceChildren(...(box ? panelOf(pane, box, choose) : this.panes.flatMap(overviewOf)));
    if (quiet) return;
    for (const other of this.panes.filter((each) => each !== pane)) {
      const there = ids.map((id) => pane.index.boxes.get(id)?.mark?.counterpart || id).filter((id) => other.index.boxes.has(id));
      other.select(there, { quiet: true, reveal: there.length > 0 });
    }
    if (box?.lines && this.panes.length === 1) this.toLine(box.lines.source, box.lines.first, false);
  }
  async fold(pane, id, open) {
    for (const other of this.panes.filter((each) => each !== pane)) if (other.index.boxes.has(id)) await other.fold(id, open);
    return pane.fold(id, open);
  }
  followed() {}
  sectionsOf() {
    return [];
  }
}
