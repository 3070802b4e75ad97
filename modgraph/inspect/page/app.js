// The page: its panes together, search, keys, themes, tabs.

let engine = null;

// ELK, unpacked when it is first needed.
function layouter() {
  engine = engine || unpack("elk").then(() => new ELK());
  return engine;
}

class App {
  constructor(data) {
    this.root = document.body;
    this.panel = document.querySelector(".panel");
    this.search = document.querySelector(".search input");
    this.count = document.querySelector(".search output");
    this.matches = [];
    this.match = -1;
    this.panes = data.panes.map((pane, at) => new (pane.levels ? LevelPane : Pane)(this, pane, at));
    this.sections = data.sections;
    this.changes = data.plan && new Changes(this, data.plan);
    this.charts = document.querySelector(".charts");
    drawCharts(this.charts, this.sections, (id) => this.toNode(id), data.config);
    this.buttons();
    this.keys();
    followTheme();
    this.splitters();
    this.panes.forEach((pane) => pane.view.fit(true));
    this.choices();
    this.overview();
    if (this.changes) this.changes.begin();
    addEventListener("resize", () => this.panes.forEach(({ view }) => (view.fitted ? view.show(true) : view.fit(true))));
    const warm = () => document.getElementById("elk") && layouter();
    setTimeout(() => (this.panes.length > 1 ? warm() : this.panes[0].fitFolds().then(warm)), 100);
  }
  splitters() {
    this.panel.before(splitter("panel", "width of the details", -1));
    const [{ canvas, data }] = this.panes;
    if (this.panes.length === 1 && data.sources.length) canvas.before(splitter("source", "width of the spec", 1));
  }
  // What the drawing may be without, where there is some.
  choices() {
    const has = { losses: (pane) => pane.index.order.some((box) => box.serves === "losses"), lengths: (pane) => pane.data.scene.edges.some((edge) => edge.kind === "length") };
    document.querySelectorAll("[data-kind]").forEach((input) => {
      const { kind } = input.dataset;
      input.closest("label").hidden = !this.panes.some((pane) => !pane.data.levels && has[kind](pane));
      input.addEventListener("change", () => this.panes.forEach((pane) => pane.leave(kind, !input.checked)));
    });
    this.settled();
  }
  // After each drawing: what is in it.
  settled() {
    document.querySelectorAll("[data-kind]").forEach((input) => (input.checked = !isWithout(this.panes[0].state, input.dataset.kind)));
  }
  overview() {
    this.panel.replaceChildren(...this.panes.flatMap(overviewOf));
  }
  // ------------------------------------------------------------ from nodes to sections and back
  sectionsOf(id) {
    return this.sections.filter((section) => section.nodes.includes(id));
  }
  toSection(section) {
    this.tab("charts");
    this.charts.querySelectorAll("section")[this.sections.indexOf(section)].scrollIntoView();
  }
  toNode(id) {
    const pane = this.panes.find((each) => each.index.boxes.has(id));
    this.tab("graph");
    return pane && pane.select([id], { reveal: true });
  }
  others(pane) {
    return this.panes.filter((each) => each !== pane);
  }
  // What corresponds in the other pane: what a mark says, or what has the same id.
  counterpart(pane, id, other) {
    const box = pane.index.boxes.get(id), there = (box && box.mark && box.mark.counterpart) || id;
    return other.index.boxes.has(there) ? there : null;
  }
  followed(pane, view) {
    for (const other of this.others(pane)) {
      const [right, down] = this.changes ? this.changes.shift(pane, other) : [0, 0];
      const end = 60 - other.view.size[1] * view.scale; // of a shorter drawing some remains in sight
      Object.assign(other.view, { x: view.x + right * view.scale, y: Math.max(end, view.y + down * view.scale), scale: view.scale });
      other.view.show(true);
    }
  }
  selected(pane, ids, quiet) {
    if (quiet) return;
    const choose = (id) => pane.select([id], { reveal: true });
    if (!ids.length) this.overview();
    else if (ids.length === 1) this.panel.replaceChildren(...panelOf(pane, pane.index.boxes.get(ids[0]), choose));
    else this.panel.replaceChildren(element("h2", {}, `${ids.length} nodes`), ...ids.map((id) => element("p", {}, element("button", { class: "link", type: "button", onclick: () => choose(id) }, id))));
    this.panel.scrollTop = 0;
    for (const other of this.others(pane)) {
      const there = ids.map((id) => this.counterpart(pane, id, other)).filter(Boolean);
      other.select(there, { quiet: true, reveal: there.some((id) => !other.positions.boxes[id]) });
    }
  }
  async fold(pane, id, open) {
    for (const other of this.others(pane)) {
      const there = this.counterpart(pane, id, other);
      if (there) await other.fold(there, open);
    }
    return pane.fold(id, open);
  }
  // ------------------------------------------------------------ search
  find(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    this.matches = [];
    for (const pane of this.panes) {
      const isCopy = (box) => [box, ...ancestors(pane.index, box.id)].some((each) => each.alike);
      const holds = (box) => words.every((word) => [box.id, box.label, box.detail, box.kind].join(" ").toLowerCase().includes(word));
      const found = words.length ? pane.index.order.filter((box) => holds(box) && !isCopy(box)) : [];
      pane.found = new Set(found.map((box) => box.id));
      this.matches.push(...found.map((box) => [pane, box.id]));
      pane.settle();
    }
    this.match = -1;
    this.count.textContent = words.length ? `${this.matches.length} found` : "";
  }
  async step(by) {
    if (!this.matches.length) return;
    this.match = (this.match + by + this.matches.length) % this.matches.length;
    const [pane, id] = this.matches[this.match];
    this.count.textContent = `${this.match + 1} of ${this.matches.length}`;
    await pane.select([id], { reveal: true });
  }
  // ------------------------------------------------------------ controls
  buttons() {
    const on = (name, act) => document.querySelectorAll(`[data-do=${name}]`).forEach((each) => each.addEventListener("click", () => act(each)));
    on("fold", () => this.panes.forEach((pane) => pane.foldAll()));
    on("unfold", () => this.panes.forEach((pane) => pane.unfoldAll()));
    on("fit", () => this.panes.forEach((pane) => pane.view.fit()));
    on("in", () => this.panes[0].view.zoom(1.3));
    on("out", () => this.panes[0].view.zoom(1 / 1.3));
    on("tab", (button) => this.tab(button.dataset.tab));
    this.search.addEventListener("input", () => this.find(this.search.value));
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1);
      else if (event.key === "Escape") this.search.blur();
      else return;
      event.preventDefault();
    });
    this.tab("graph");
  }
  keys() {
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
      const view = this.panes[0].view;
      const acts = {
        "/": () => this.search.select(), n: () => this.step(1), N: () => this.step(-1), Escape: () => this.panes[0].select([]),
        f: () => this.panes.forEach((pane) => pane.view.fit()), "+": () => view.zoom(1.25), "=": () => view.zoom(1.25), "-": () => view.zoom(0.8),
        w: () => view.pan(0, 60), s: () => view.pan(0, -60), a: () => view.pan(60, 0), d: () => view.pan(-60, 0),
      };
      if (!acts[event.key]) return;
      event.preventDefault();
      acts[event.key]();
    });
  }
  tab(name) {
    this.root.dataset.tab = name;
    document.querySelectorAll("[data-do=tab]").forEach((each) => each.setAttribute("aria-selected", String(each.dataset.tab === name)));
  }
}

const isPacked = document.getElementById("data").type !== "application/json";
if (isPacked) textOf("data").then((text) => new App(JSON.parse(text)));
else new App(JSON.parse(document.getElementById("data").textContent));
