// A trained model beside its spec: the page of its run, in a frame of its own. It is loaded when the visitor opens it.

const { element } = globalThis;
const KEPT = "This run was trained from this text.";
const CHANGED = "The text or a parameter was changed since: this run is of $ as it was trained.";

export class RunView {
  // `entries` are those of the library with a run; `take` opens one of them as it was trained.
  constructor(place, entries, take) {
    Object.assign(this, { place, entries, shown: null, chosen: null });
    this.choice = element("select", { "aria-label": "run", onchange: () => this.pick(this.choice.value) });
    this.restore = element("button", { type: "button", onclick: () => take(this.chosen) }, "Open as trained");
    this.said = element("p", { class: "origin", role: "status" });
    this.bar = element("div", { class: "tools" }, this.choice, this.said, this.restore);
    place.append(this.bar);
    new MutationObserver(() => this.follow()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }
  // The runs of a model; without any, the frame is left, and its memory is free.
  offer(model) {
    const fitting = this.entries.filter(({ run }) => run.model === model);
    if (fitting.includes(this.chosen)) return true;
    this.chosen = fitting[0] ?? null;
    this.choice.replaceChildren(...fitting.map(({ title, about, run }) => element("option", { value: run.place }, [title, about].filter(Boolean).join(": "))));
    this.choice.hidden = fitting.length < 2;
    if (!this.chosen) this.leave();
    return Boolean(this.chosen);
  }
  choose(entry) {
    this.offer(entry.run.model);
    this.pick(entry.run.place);
  }
  pick(place) {
    this.chosen = this.entries.find(({ run }) => run.place === place);
    this.choice.value = place;
    this.place.dispatchEvent(new Event("pick"));
  }
  // Show the run, and say whether it belongs to the text. `program` is the hash of the text's graph, or why it has none.
  draw({ program, reason }) {
    const { run, open } = this.chosen, isSame = program === run.program;
    this.said.textContent = isSame ? KEPT : `${reason ? `${reason} ` : ""}${CHANGED.replace("$", () => open)}`;
    this.said.classList.toggle("changed", !isSame);
    this.restore.hidden = isSame;
    if (this.shown === run.place) return;
    this.leave();
    this.shown = run.place;
    this.frame = element("iframe", { class: "run", src: run.place, title: `the run of ${open}`, onload: () => this.follow() });
    this.place.append(this.frame);
  }
  leave() {
    this.frame?.remove();
    this.shown = this.frame = null;
  }
  // Light or dark, as the page around.
  follow() {
    const root = this.frame?.contentDocument?.documentElement;
    if (root) root.dataset.theme = document.documentElement.dataset.theme;
  }
}
