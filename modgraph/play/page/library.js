// The dialogue that opens files: an entry of the library, files of the visitor's computer, a new spec.

import { isName } from "./link.js";

const { element } = globalThis;

export class Library {
  // `take` gets an entry, `make` the name and the text of a file.
  constructor(dialog, { entries, take, make }) {
    Object.assign(this, { dialog, entries, take, make });
    this.search = element("input", { type: "search", placeholder: "Search", "aria-label": "search the library", oninput: () => this.list() });
    this.lists = element("div", { class: "lists" });
    const file = element("input", { type: "file", accept: ".mod,.yaml,.yml", multiple: true, onchange: () => this.read(file) });
    const close = element("button", { type: "button", onclick: () => dialog.close() }, "Close");
    dialog.append(element("form", { onsubmit: (event) => this.first(event) }, this.search, close), this.lists, element("label", { class: "own" }, "From this computer: ", file));
    this.list();
  }
  show() {
    this.dialog.showModal();
    this.search.select();
  }
  list() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = this.entries.filter(({ group, title, about }) => words.every((word) => `${group} ${title} ${about}`.toLowerCase().includes(word)));
    const groups = [...new Set(found.map(({ group }) => group))];
    this.lists.replaceChildren(...groups.flatMap((group) => [element("h2", {}, group), element("ul", {}, found.filter((each) => each.group === group).map((each) => this.row(each)))]));
  }
  row(entry) {
    const take = () => (this.dialog.close(), this.take(entry));
    return element("li", {}, element("button", { type: "button", class: "link", "data-entry": entry.open, onclick: take }, entry.title), " ", element("span", { class: "muted" }, entry.about));
  }
  first(event) {
    event.preventDefault();
    this.lists.querySelector("[data-entry]")?.click();
  }
  async read(input) {
    for (const file of input.files) if (isName(file.name)) this.make(file.name, await file.text());
    input.value = "";
    this.dialog.close();
  }
}
