// The page: the work, the editors, the worker and the results, put together.

import { bindActions, writeAddress } from "./actions.js";
import { DOMPurify, LSPClient } from "./codemirror.js";
import { Connection } from "./connection.js";
import { diagnostics } from "./diagnostics.js";
import { Editor, SERVER_EXTENSIONS } from "./editor.js";
import { languageOf } from "./language.js";
import { Library } from "./library.js";
import { Parameters } from "./parameters.js";
import { Problems } from "./problems.js";
import { Results } from "./results.js";
import { readWork, workOf } from "./start.js";
import { Status } from "./status.js";
import { splitter } from "./splitter.js";
import { Tabs } from "./tabs.js";
import { listViews } from "./views.js";
import { Work, afterPause, storage } from "./work.js";
import { Files, ROOT, nameOf, uriOf } from "./workspace.js";

const { followTheme } = globalThis;
const find = (selector) => document.querySelector(selector);
const PATIENCE = 120_000; // milliseconds for an answer of the worker
const ERROR = 1; // the severity of a message
const FIRST = "smn"; // the entry of the library that a first visit begins with

class App {
  // The entries of the library, the one to open first, the words of the language, the runs, and the tour.
  constructor({ entries }, opened, words, runs, { steps, home }) {
    Object.assign(this, { entries: [...runs, ...entries], words, steps, home, work: new Work(), messages: new Map(), word: "", status: new Status(() => this.restart()) });
    this.first = opened ?? entries.find(({ title }) => title === FIRST) ?? entries[0];
    this.start = opened ? opened.files[opened.open] : "";
    this.connection = new Connection("page/worker.js", { fail: (reason) => this.fail(reason), warn: (reason) => this.status.warn(reason) });
    this.client = this.connect();
    const language = languageOf(words);
    this.editor = new Editor(find(".editor"), {
      client: this.client, language, edited: (name, text) => this.work.write(name, text), moved: afterPause(() => this.moved(), 200),
    });
    this.tabs = new Tabs(find(".files .tabs"), (name) => this.work.open(name), (name) => this.close(name));
    this.problems = new Problems(find(".problems"), { go: (...at) => this.editor.go(...at), explain: (word) => this.explain(word) });
    this.parameters = new Parameters(find(".parameters"), this.work);
    this.results = new Results(find(".right"), listViews(this));
    this.open = new Library(find(".library"), { entries: this.entries, take: (entry) => this.take(entry), make: (name, text) => this.work.open(name, text) });
    this.keep = afterPause(() => (storage.write(this.work, this.start), writeAddress(this.work)), 800);
    this.askSoon = afterPause(() => this.refresh(), 120);
    this.work.addEventListener("change", ({ detail }) => this.changed(detail));
    splitter(find("[data-border=columns]"), { name: "--columns" })(46);
    splitter(find("[data-border=problems]"), { name: "--problems", across: false, least: 20, most: 92 })(76);
    bindActions(this);
    followTheme();
  }
  // ------------------------------------------------------------ the worker
  connect() {
    const { status } = this;
    const client = new LSPClient({
      rootUri: ROOT, timeout: PATIENCE, workspace: (each) => new Files(each, (uri) => this.display(uri)), sanitizeHTML: (html) => DOMPurify.sanitize(html, { FORBID_TAGS: ["img", "style", "form"] }),
      extensions: [...SERVER_EXTENSIONS, diagnostics((...heard) => this.hear(...heard))],
      notificationHandlers: {
        "modgraph/progress": (_, { what, loaded, total }) => status.progress(what, loaded, total),
        "modgraph/ready": (_, { seconds }) => this.ready(seconds),
      },
    });
    return client;
  }
  begin() {
    this.connection.start();
    this.client.connect(this.connection);
  }
  // The engine has ended: nothing is asked until it is started again.
  fail(reason) {
    this.results.isReady = false;
    this.status.fail(reason);
  }
  restart() {
    this.client.disconnect();
    this.begin();
  }
  ready(seconds) {
    this.results.isReady = true;
    this.status.ready(seconds);
    this.askSoon();
    return true;
  }
  // What the worker answers about the spec with the parameters in force.
  ask(method, more = {}) {
    this.client.sync();
    const about = method === "explain" ? {} : { uri: uriOf(this.work.spec), parameters: Object.fromEntries(this.work.values) };
    return this.client.request(`modgraph/${method}`, { ...about, ...more });
  }
  // ------------------------------------------------------------ what changes
  changed(what) {
    this.keep();
    if (what === "files") this.showFiles();
    if (what === "values") this.parameters.settle();
    find("[data-do=pin]").setAttribute("aria-pressed", String(Boolean(this.work.pinned)));
    if (what !== "text") this.askSoon();
  }
  showFiles() {
    const { files, active } = this.work;
    this.editor.show(files, active);
    this.showTabs();
    this.problems.show(this.messages.get(active));
  }
  showTabs() {
    const mark = (name) => (this.hasErrors(name) ? "● " : "");
    this.tabs.show([...this.work.files.keys()].map((name) => ({ id: name, label: mark(name) + name.split("/").pop(), title: name, controls: "editor" })), this.work.active);
  }
  hasErrors(name) {
    return (this.messages.get(name) ?? []).some(({ severity }) => severity === ERROR);
  }
  // Messages of a file have come; the results follow when they are those of its text.
  hear(uri, messages, isCurrent) {
    const name = nameOf(uri), had = this.hasErrors(name);
    this.messages.set(name, messages);
    if (name === this.work.active) this.problems.show(messages);
    if (had !== this.hasErrors(name)) this.showTabs();
    if (isCurrent) this.askSoon();
  }
  async refresh() {
    if (!this.results.isReady) return;
    const isBroken = this.hasErrors(this.work.spec);
    const rendered = this.results.changed(isBroken ? "the text has mistakes: this belongs to the last one without" : "");
    if (!isBroken) await this.ask("parameters").then((found) => this.know(found), () => {}); // the results say why
    await rendered;
  }
  // The parameters of the model, and its name: its runs are offered.
  know({ parameters, model }) {
    this.parameters.show(parameters);
    if (model) this.runs.offer(model);
  }
  get runs() {
    return this.results.views.get("run").view;
  }
  moved() {
    const word = this.editor.word();
    if (!word || word === this.word || this.results.view.id !== "help" || !this.editor.view.hasFocus) return;
    this.word = word;
    this.results.changed(this.results.reason);
  }
  explain(word) {
    this.word = word;
    this.results.version++;
    return this.results.show("help");
  }
  // ------------------------------------------------------------ files
  // Open an entry of the library in the place of what is unchanged in others; files of the visitor stay.
  take(entry) {
    const known = new Map(this.entries.flatMap(({ files }) => Object.entries(files)));
    const own = [...this.work.files].filter(([name, text]) => known.get(name) !== text && !Object.hasOwn(entry.files, name));
    this.work.take({ files: [...Object.entries(entry.files), ...own], values: Object.entries(entry.values ?? {}), active: entry.open });
    if (!entry.run) return;
    this.runs.choose(entry);
    this.results.show("run");
  }
  close(name) {
    if (this.work.close(name)) this.client.notification("modgraph/write", { files: { [name]: null } });
  }
  async display(uri) {
    const name = nameOf(uri);
    if (!this.work.files.has(name)) return null;
    this.work.open(name);
    return this.editor.view;
  }
  // Show a line of a file, which boxes of the graph name by the end of its path.
  toLine(source, line, isWanted) {
    const name = [...this.work.files.keys()].find((each) => each === source || source.endsWith(`/${each}`) || each.endsWith(`/${source}`));
    if (name === undefined || (name !== this.work.active && !isWanted)) return;
    this.work.open(name);
    this.editor.go(line - 1, 0, isWanted);
  }
  // Pin the state to compare with, or let go of it.
  async pin() {
    const { spec, files, values, pinned } = this.work;
    if (pinned) return this.work.pin(null);
    try {
      const { cost } = await this.ask("cost");
      this.work.pin({ text: files.get(spec), parameters: Object.fromEntries(values), cost });
    } catch (error) {
      this.status.say(`nothing is pinned: ${error.message}`);
    }
  }
}

async function begin() {
  const facts = await Promise.all(["library.json", "opened.json", "page/words.json", "runs.json", "tour.json"].map(async (name) => (await fetch(name)).json()));
  const app = new App(facts[0], facts[1].entry, facts[2], facts[3].entries, facts[4]);
  globalThis.playground = app;
  await readWork(app);
  app.begin();
}

begin();
