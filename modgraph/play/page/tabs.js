// A row of tabs. One of them is in the order of focus; arrows, Home and End choose another.

const { element } = globalThis;

export class Tabs {
  // `choose` hears the id of a tab that the visitor takes, `close` that of one to be closed (Delete, middle click).
  constructor(row, choose, close) {
    Object.assign(this, { row, choose, close, ids: [] });
    row.setAttribute("role", "tablist");
    row.addEventListener("keydown", (event) => this.key(event));
  }
  show(tabs, current) {
    const hadFocus = this.row.contains(document.activeElement);
    this.ids = tabs.map(({ id }) => id);
    this.row.replaceChildren(...tabs.map((tab) => this.tab(tab, tab.id === current)));
    this.current = this.row.querySelector("[aria-selected=true]");
    this.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
    if (hadFocus) this.current?.focus();
  }
  tab({ id, label, title, controls }, isCurrent) {
    const close = this.close && element("span", { class: "close", title: "close (Delete)", "aria-hidden": "true", onclick: (event) => (event.stopPropagation(), this.close(id)) }, "×");
    return element("button", {
      type: "button", role: "tab", "data-tab": id, title, "aria-controls": controls, "aria-selected": String(isCurrent), tabindex: isCurrent ? "0" : "-1",
      onclick: () => this.choose(id), onauxclick: (event) => event.button === 1 && this.close?.(id),
    }, label, close);
  }
  key(event) {
    const id = event.target.closest("[role=tab]")?.dataset.tab, at = this.ids.indexOf(id), last = this.ids.length - 1;
    const next = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last }[event.key];
    if (event.key === "Delete" && this.close) this.close(id);
    else if (next === undefined) return;
    else this.choose(this.ids[next]);
    event.preventDefault();
  }
}
