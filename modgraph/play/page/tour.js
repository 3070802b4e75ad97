// The tour: steps of the tutorial, each with a text, a spec to begin with, and facts that an answer meets.

import { DOMPurify, Marked } from "./codemirror.js";
import { languageOf } from "./language.js";
import { TextView } from "./texts.js";

const { element } = globalThis;
const KEY = "modgraph.tour", FOLDER = "tour";
const CLEAN = { FORBID_TAGS: ["img", "style", "form", "svg", "math", "input", "button", "iframe"], FORBID_ATTR: ["style", "id", "name"] };
const UNDO = "undo in the text (Ctrl+Z) brings back what was there";
const escape = ({ text }) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const markdown = new Marked({ renderer: { html: escape } }); // HTML in a text is text

// What the browser keeps of the tour: the step in sight, and those that are done.
const kept = {
  read(count) {
    try {
      const { at, done } = JSON.parse(localStorage.getItem(KEY));
      const isStep = (each) => Number.isInteger(each) && each >= 0 && each < count;
      return { at: isStep(at) ? at : 0, done: new Set(Array.isArray(done) ? done.filter(isStep) : []) };
    } catch {
      return { at: 0, done: new Set() }; // no storage, or something that is not ours
    }
  },
  write({ at, done }) {
    try {
      localStorage.setItem(KEY, JSON.stringify({ at, done: [...done] }));
    } catch {} // no storage, or it is full
  },
};

export class Tour {
  constructor(place, app, steps) {
    Object.assign(this, { app, steps, buttons: {}, ...kept.read(steps.length) });
    const button = (name, label, act) => (this.buttons[name] = element("button", { type: "button", "data-tour": name, onclick: act }, label));
    this.heading = element("h2", { tabindex: "-1" });
    this.progress = element("progress", { max: String(steps.length), "aria-label": "steps done" });
    this.count = element("span", { class: "muted" });
    this.text = element("div", { class: "tour-text" });
    this.facts = element("ul", { class: "facts", "aria-label": "what the answer needs" });
    this.verdict = element("p", { class: "verdict", role: "status" });
    this.answer = element("div", { class: "tour-answer", hidden: true });
    this.source = element("p", { class: "muted tour-source" });
    place.append(
      element("div", { class: "tools" }, button("previous", "← Previous", () => this.go(this.at - 1)), button("next", "Next →", () => this.go(this.at + 1)), this.progress, this.count),
      element("div", { class: "tour" }, this.heading, this.text, element("div", { class: "task" },
        element("div", { class: "tools" }, button("begin", "Open the step's spec", () => this.begin()), button("show", "Show the answer", () => this.toggle())), this.facts, this.verdict, this.answer), this.source),
    );
    this.code = new TextView(this.answer, languageOf(app.words), "the answer"); // in the document, where it finds its styles
    this.answer.append(element("div", { class: "tools" }, button("use", "Put it into the editor", () => this.use()), element("span", { class: "muted" }, UNDO)));
    this.drawStep();
  }
  get step() {
    return this.steps[this.at];
  }
  get file() {
    return `${FOLDER}/${this.at + 1}-${this.step.file}`;
  }
  go(to) {
    if (to < 0 || to >= this.steps.length) return;
    this.at = to;
    kept.write(this);
    this.drawStep();
    this.begin();
    this.heading.focus();
  }
  // Open the spec of the step in a file of its own; what the visitor has written there stays.
  begin() {
    this.app.work.open(this.file, this.step.begin);
    this.app.editor.host.scrollIntoView({ block: "nearest" });
  }
  toggle() {
    this.answer.hidden = !this.answer.hidden;
    this.code.view.requestMeasure(); // it could not while it was hidden
    this.buttons.show.setAttribute("aria-expanded", String(!this.answer.hidden));
  }
  // An edit like any other, which the editor can undo.
  use() {
    this.begin();
    this.app.editor.replace(this.step.answer);
  }
  drawStep() {
    const { at, step, steps } = this, { home } = this.app;
    this.buttons.previous.disabled = at === 0;
    this.buttons.next.disabled = at === steps.length - 1;
    this.heading.textContent = step.title;
    this.text.innerHTML = DOMPurify.sanitize(markdown.parse(step.text), CLEAN);
    for (const block of this.text.querySelectorAll("pre")) block.tabIndex = 0; // wide ones scroll by arrows
    for (const link of this.text.querySelectorAll("a")) this.lead(link);
    this.answer.hidden = true;
    this.code.draw(step.answer);
    const page = home ? element("a", { href: `${home}tutorial/${step.page}.html` }, step.page) : `docs/tutorial/${step.page}.md`;
    this.source.replaceChildren("The page of the tutorial: ", page);
    this.draw(null);
  }
  // A link of the tutorial leads to the documents' site, where that is known; any other is plain text.
  lead(link) {
    const { home } = this.app, documents = home && new URL(home, location.href).href;
    const place = [(link.getAttribute("href") ?? "").replace(/\.md(?=#|$)/, ".html"), `${documents}tutorial/`];
    const to = documents && URL.canParse(...place) ? new URL(...place).href : "";
    if (to.startsWith(documents)) Object.assign(link, { href: to, target: "_blank", rel: "noopener" });
    else link.replaceWith(...link.childNodes);
  }
  // What the worker says of the file of the step; null while another one is in sight.
  async load() {
    const { app, file, step } = this;
    if (app.work.spec !== file) return null;
    if (app.hasErrors(file)) return { met: false, facts: [], first: "" };
    return { ...(await app.ask("tour", { check: step.check, warnings: step.warnings })), file };
  }
  draw(found) {
    if (found?.file && found.file !== this.file) return;
    if (found?.met) this.done.add(this.at);
    kept.write(this);
    this.progress.value = this.done.size;
    this.count.textContent = `step ${this.at + 1} of ${this.steps.length}, ${this.done.size} done`;
    this.facts.replaceChildren(...(found?.facts ?? []).map(({ words, met, missing, hint }) =>
      element("li", { class: met ? "met" : "unmet" }, element("span", { "aria-hidden": "true" }, met ? "✓ " : "○ "), words.replaceAll("`", ""), met ? "" : element("span", { class: "muted" }, ` · ${missing}. ${hint.replaceAll("`", "")}`))));
    this.verdict.className = found?.met ? "verdict met" : "verdict";
    this.verdict.textContent = this.say(found);
  }
  say(found) {
    if (!found) return "Open the step's spec, and change it: the check runs as you type.";
    if (found.met) return this.done.size === this.steps.length ? "Done: this was the whole tour." : "Done.";
    return found.first || (found.facts.length ? "" : "The spec has mistakes: the messages below the text say which.");
  }
}
