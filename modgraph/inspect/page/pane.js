// One graph with its source: what is unfolded, selected and found in it, arranged and rendered.

const MOST_KEPT = 12; // layouts of a pane

class Pane {
  constructor(app, data, at) {
    Object.assign(this, { app, data, at, index: indexed(data.scene), selected: [], found: new Set(), positions: data.positions, queue: Promise.resolve(), layouts: new Map() });
    annotate(this.index, data);
    this.state = copyOf(data.state);
    this.place = app.root.querySelectorAll(".pane")[at];
    this.canvas = this.place.querySelector(".canvas");
    this.svg = this.canvas.querySelector("svg");
    this.source = new SourcePane(this, data.sources, (ids) => this.select(ids, { reveal: true }));
    if (data.sources.length) this.place.insertBefore(this.source.place, this.canvas);
    this.view = new View(this.canvas, this.svg, (view) => app.followed(this, view));
    this.measure();
    this.svg.addEventListener("click", (event) => this.clicked(event));
    this.svg.addEventListener("dblclick", (event) => this.folded(event.target.closest("[data-id]")));
    this.svg.addEventListener("keydown", (event) => this.key(event));
    this.settle();
  }
  boxAt(id) {
    return [...this.svg.querySelectorAll(".box")].find((each) => each.dataset.id === id);
  }
  // After each drawing: classes of selection and search, the one box that tab reaches.
  settle() {
    const edges = [...this.svg.querySelectorAll(".edge")], selected = new Set(this.selected);
    const boxes = [...this.svg.querySelectorAll(".box")];
    for (const box of boxes) {
      box.classList.toggle("selected", selected.has(box.dataset.id));
      box.classList.toggle("found", this.found.has(box.dataset.id));
      box.setAttribute("aria-selected", String(selected.has(box.dataset.id)));
      box.tabIndex = -1;
    }
    for (const edge of edges) edge.classList.toggle("lit", selected.has(edge.dataset.source) || selected.has(edge.dataset.target));
    const first = boxes.find((box) => selected.has(box.dataset.id)) || boxes[0];
    if (first) first.tabIndex = 0;
  }
  // The positions of a state, at once if it was arranged lately.
  async layout(state) {
    const key = JSON.stringify([...Object.entries(state)].map(([name, value]) => [name, value instanceof Set ? [...value].sort() : value]).sort());
    const known = this.layouts.get(key) || readPositions(await (await layouter()).layout(elkGraph(this.index, state)));
    this.layouts.delete(key);
    this.layouts.set(key, known);
    if (this.layouts.size > MOST_KEPT) this.layouts.delete(this.layouts.keys().next().value);
    return known;
  }
  // The size of the drawing, and the middle of its highest box.
  measure() {
    const highest = Object.values(this.positions.boxes).reduce((best, place) => (place[1] < best[1] ? place : best), [0, Infinity, 0, 0]);
    Object.assign(this.view, { size: [this.positions.width, this.positions.height], middle: highest[0] + highest[2] / 2 });
  }
  // Fold until it can be read here, where there is less room than the page was made for.
  async fitFolds() {
    const room = [this.canvas.clientWidth - 24, 2 * this.canvas.clientHeight - 24].map((length) => length / READABLE);
    if (this.positions.width <= room[0] || !this.canvas.clientWidth) return;
    const { direction } = this.state, layout = (state) => this.layout(Object.assign(state, { direction }));
    this.state = (await firstView(this.index, layout, room, this.state.without)).state;
    await this.redraw();
    this.view.fit(true);
  }
  // Draw with or without what may be left out.
  leave(what, isLeft) {
    isLeft ? this.state.without.add(what) : this.state.without.delete(what);
    return this.redraw(this.anchor());
  }
  // What stays in its place where much changes: what is selected, else the box nearest to the middle.
  anchor() {
    const { view, canvas, positions } = this, far = ([x, y, width, height]) =>
      Math.hypot(view.x + (x + width / 2) * view.scale - canvas.clientWidth / 2, view.y + (y + height / 2) * view.scale - canvas.clientHeight / 2);
    const known = this.selected.find((id) => positions.boxes[id]);
    return known || Object.keys(positions.boxes).sort((a, b) => far(positions.boxes[a]) - far(positions.boxes[b]))[0];
  }
  // Lay out and draw what is unfolded; `anchor` stays where it is on the screen. One layout at a time.
  redraw(anchor) {
    this.queue = this.queue.then(async () => {
      const before = anchor && this.positions.boxes[anchor], hadFocus = document.activeElement && document.activeElement.closest && document.activeElement.closest(".box");
      const focus = hadFocus && this.svg.contains(hadFocus) ? hadFocus.dataset.id : null;
      const state = copyOf(this.state); // a key may change it meanwhile
      this.positions = await this.layout(state);
      this.measure();
      const now = anchor && this.positions.boxes[anchor];
      this.svg.replaceChildren(svgElement(drawing(this.index, state, this.positions)));
      if (before && now) {
        this.view.x += (before[0] - now[0]) * this.view.scale;
        this.view.y += (before[1] - now[1]) * this.view.scale;
      }
      this.view.show(true);
      this.settle();
      if (this.app.settled) this.app.settled();
      if (focus) this.focus(focus);
    });
    return this.queue;
  }
  focus(id) {
    const box = this.boxAt(id);
    if (box) box.focus({ preventScroll: true });
  }
  async select(ids, { reveal: bring = false, quiet = false } = {}) {
    const known = (Array.isArray(ids) ? ids : [ids]).filter((id) => this.index.boxes.has(id));
    if (bring && known.some((id) => !this.positions.boxes[id])) {
      for (const id of known) reveal(this.index, this.state, id);
      await this.redraw();
    }
    this.selected = known.map((id) => framed(this.index, this.state, id));
    this.settle();
    if (bring && known.length) this.view.bring(this.positions.boxes[this.selected[0]]);
    this.source.mark(known.map((id) => this.index.boxes.get(id)));
    this.app.selected(this, known, quiet);
  }
  // Bring a box into the middle, with as much of what is around it as fits across.
  centre(id) {
    const { view, canvas, positions } = this, outer = [id, ...ancestors(this.index, id).map((box) => box.id)];
    const places = outer.map((each) => positions.boxes[each]).filter(Boolean), room = (canvas.clientWidth - 8) / Math.max(view.scale, READABLE);
    const [x, , width] = places.filter((place) => place[2] <= room).pop() || places[0], [, y, , height] = places[0];
    view.centre([x, y, width, height]);
  }
  toSource(box) {
    this.app.tab("spec");
    this.source.mark([box]);
  }
  fold(id, open) {
    const box = this.index.boxes.get(id);
    if (!isGroup(box) || this.state.open.has(id) === open) return;
    if (open) this.state.open.add(id);
    else {
      this.state.open.delete(id);
      this.state.all.delete(id);
    }
    return this.redraw(id);
  }
  folded(box) {
    if (box) this.app.fold(this, box.dataset.id, !this.state.open.has(box.dataset.id));
  }
  showAll(id) {
    if (this.state.all.has(id)) this.state.all.delete(id);
    else unfoldLike(this.index.boxes.get(id), this.state);
    return this.redraw(id);
  }
  foldAll() {
    this.state = { ...this.state, open: new Set(), all: new Set() };
    return this.redraw().then(() => this.view.fit(true));
  }
  unfoldAll() {
    const anchor = this.anchor();
    this.state = { ...this.state, ...unfoldedAll(this.index.scene, this.state.without) };
    return this.redraw(anchor).then(() => this.view.readable(this.positions.boxes[anchor]));
  }
  clicked(event) {
    if (this.view.moved) return;
    const fold = event.target.closest("[data-fold]"), all = event.target.closest("[data-all]"), box = event.target.closest("[data-id]");
    if (fold) return this.folded(box);
    if (all) return this.showAll(all.dataset.all);
    this.select(box ? [box.dataset.id] : []);
    if (box) this.focus(box.dataset.id);
  }
  key(event) {
    const box = event.target.closest(".box");
    if (!box || event.ctrlKey || event.metaKey || event.altKey) return;
    const id = box.dataset.id, open = this.state.open.has(id);
    const directions = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
    if (event.key === "Enter") isGroup(this.index.boxes.get(id)) ? this.app.fold(this, id, !open) : this.select([id]);
    else if (event.key === " ") this.select([id]);
    else if (event.key === "+" || event.key === "=") this.app.fold(this, id, true);
    else if (event.key === "-") this.app.fold(this, id, false);
    else if (event.key === "*" && this.index.boxes.get(id).kind === "repeat") this.showAll(id);
    else if (directions[event.key]) this.go(id, directions[event.key]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  // Select the nearest box in a direction: of those next to it, or from an unfolded box what is in it.
  go(id, [dx, dy]) {
    const middle = ([x, y, width, height]) => [x + width / 2, y + height / 2];
    const start = this.positions.boxes[id], [x, y] = this.state.open.has(id) ? [start[0] + start[2] / 2, start[1]] : middle(start);
    let best = null, least = Infinity;
    for (const [other, place] of Object.entries(this.positions.boxes)) {
      if (other === id) continue;
      const [ox, oy] = this.state.open.has(other) ? [place[0] + place[2] / 2, place[1] + 12] : middle(place);
      const along = (ox - x) * dx + (oy - y) * dy, across = Math.abs((ox - x) * dy) + Math.abs((oy - y) * dx);
      const far = along + 2 * across;
      if (along > 4 && far < least) [best, least] = [other, far];
    }
    if (best === null) return;
    this.select([best]).then(() => {
      this.view.bring(this.positions.boxes[best]);
      this.focus(best);
    });
  }
}

// A fold state of its own, from one whose sets may be lists.
function copyOf({ open, all, without = LEFT_OUT, ...rest }) {
  return { open: new Set(open), all: new Set(all), without: new Set(without), ...rest };
}
