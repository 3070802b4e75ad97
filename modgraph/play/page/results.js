// The tabs of results. Only the one in sight asks the worker; it is dimmed until it displays what belongs to the text.

import { Tabs } from "./tabs.js";

const { element } = globalThis;
const SUPERSEDED = -32801; // a later change of the text has made a request pointless

export class Results {
  // A view has an id, a label, `load` for what the worker answers, and `draw` for what it makes of that.
  constructor(root, views) {
    this.views = new Map(views.map((view) => [view.id, Object.assign(view, { place: root.querySelector(`#view-${view.id}`), rendered: 0 })]));
    for (const view of views) view.place.prepend((view.note = element("p", { class: "note", hidden: true, role: "status" })));
    this.tabs = new Tabs(root.querySelector(":scope > .tabs"), (id) => this.show(id));
    Object.assign(this, { version: 1, isRunning: false, isReady: false });
    this.show(views[0].id);
  }
  show(id) {
    this.view = this.views.get(id);
    this.tabs.show([...this.views.values()].map((view) => ({ id: view.id, label: view.label, controls: `view-${view.id}` })), id);
    for (const view of this.views.values()) view.place.hidden = view !== this.view;
    return this.refresh();
  }
  // The text, a parameter or the pinned state has changed. With a reason, there is nothing to ask for: what is displayed is of before.
  changed(reason = "") {
    this.version++;
    this.reason = reason;
    return this.refresh();
  }
  async refresh() {
    if (this.isRunning || !this.isReady) return;
    this.isRunning = true;
    while (this.view.rendered !== this.version) await this.update(this.view, this.version);
    this.isRunning = false;
  }
  async update(view, version) {
    view.place.dataset.state = view.data ? "outdated" : "waiting";
    const reason = await this.tryToDraw(view);
    if (reason === SUPERSEDED) return;
    view.rendered = version;
    view.note.textContent = reason;
    view.note.hidden = !reason;
    if (version === this.version) view.place.dataset.state = !reason ? "current" : view.data ? "outdated" : "empty";
  }
  // Draw what the worker answers; else say why not.
  async tryToDraw(view) {
    if (this.reason && !view.isIndependent) return this.reason;
    try {
      const data = await view.load();
      await view.draw(data);
      view.data = data;
      return "";
    } catch (error) {
      return error?.code === SUPERSEDED ? SUPERSEDED : error?.message ?? String(error);
    }
  }
}
