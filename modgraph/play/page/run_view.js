// A trained model next to its spec: the page of its run, in a frame of its own. It is loaded when the visitor opens it.

const { element } = globalThis;
const KEPT = "This run was trained from this text.";
const CHANGED = "The text or a parameter was changed since: this run is of $ as it was trained.";

export class RunView {
  // `entries` are those of the library with a run; `take` opens one of them as it was trained.
  constructor(place, entries, take) {
    Object.assign(this, { place, entries, take, model: "", displayed: null, choice: null });
    this.select = element("select", { "aria-label": "run", onchange: () => this.pick(this.select.value) });
    this.restore = element("button", { type: "button", onclick: () => take(this.choice) }, "Open as trained");
    this.said = element("p", { class: "origin", role: "status" });
    this.bar = element("div", { class: "tools" }, this.select, this.said, this.restore);
    this.hint = element("div", { class: "prose" });
    place.append(this.bar, this.hint);
    new MutationObserver(() => this.follow()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }
  // The runs of a model; without any, the frame is left, and its memory is free.
  offer(model) {
    if (model === this.model) return;
    this.model = model;
    const fitting = this.entries.filter(({ run }) => run.model === model);
    this.choice = fitting[0] ?? null;
    this.select.replaceChildren(...fitting.map(({ title, about, run }) => element("option", { value: run.place }, [title, about].filter(Boolean).join(": "))));
    this.select.hidden = fitting.length < 2;
    this.place.dispatchEvent(new Event("pick"));
  }
  choose(entry) {
    this.offer(entry.run.model);
    this.pick(entry.run.place);
  }
  pick(place) {
    this.choice = this.entries.find(({ run }) => run.place === place);
    this.select.value = place;
    this.place.dispatchEvent(new Event("pick"));
  }
  // Show the run, and say whether it belongs to the text. `program` is the hash of the text's graph, or why it has none.
  draw({ program, reason }) {
    this.bar.hidden = !this.choice;
    this.hint.hidden = Boolean(this.choice);
    if (!this.choice) return this.drawHint();
    const { run, open } = this.choice, isSame = program === run.program;
    this.said.textContent = isSame ? KEPT : `${reason ? `${reason} ` : ""}${CHANGED.replace("$", () => open)}`;
    this.said.classList.toggle("changed", !isSame);
    this.restore.hidden = isSame;
    if (this.displayed === run.place) return;
    this.leave();
    this.displayed = run.place;
    this.frame = element("iframe", { class: "run", src: run.place, title: `the run of ${open}`, onload: () => this.follow() });
    this.place.append(this.frame);
  }
  // No run has the model of the text: how to add one, and which models have runs.
  drawHint() {
    this.leave();
    const name = this.model || "mine", others = [...new Map(this.entries.map((entry) => [entry.run.model, entry]))];
    const command = element("code", {}, `modgraph play ${name}.mod -o playground --with runs/${name}`);
    const link = ([model, entry]) => element("button", { type: "button", class: "link", onclick: () => this.take(entry) }, model);
    const list = others.flatMap((each, at) => [at ? ", " : "", link(each)]);
    this.hint.replaceChildren(element("p", {}, "No run of this model is here; train it and add it: ", command), ...(list.length ? [element("p", { class: "muted" }, "Here are runs of ", ...list, ".")] : []));
  }
  leave() {
    this.frame?.remove();
    this.displayed = this.frame = null;
  }
  // Light or dark, as the page around.
  follow() {
    const root = this.frame?.contentDocument?.documentElement;
    if (root) root.dataset.theme = document.documentElement.dataset.theme;
  }
}
