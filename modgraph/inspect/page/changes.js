// The plan of a comparison above both graphs: previous and next change, and the boxes by which both move together.

class Changes {
  constructor(app, plan) {
    Object.assign(this, { app, list: plan.changes, at: -1, pair: [null, null], queue: Promise.resolve() });
    const button = (text, by, title) => element("button", { type: "button", title, onclick: () => this.step(by) }, text);
    this.position = element("output", { "aria-label": "position" });
    this.what = element("span", { class: "what", role: "status" });
    const steps = this.list.length ? [button("‹ Previous", -1, "previous change (p)"), this.position, button("Next ›", 1, "next change (n)"), this.what] : [];
    document.querySelector(".bar").after(element("section", { class: "plan", "aria-label": "changes" }, element("strong", {}, plan.text), ...steps));
    document.addEventListener("keydown", (event) => this.key(event));
  }
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    if (event.key === "p") this.step(-1);
    else if (event.key === "n" && !this.app.matches.length) this.step(1);
  }
  // The first change; where the graphs are the same, what else was compared.
  begin() {
    if (this.list.length) this.go(0);
    else if (this.app.sections.length) this.app.tab("charts");
  }
  step(by) {
    if (this.list.length) return this.go((Math.max(this.at, by < 0 ? 0 : -1) + by + this.list.length) % this.list.length);
  }
  go(at) {
    const change = this.list[at], side = change.after ? 1 : 0, pane = this.app.panes[side];
    this.at = at;
    this.position.textContent = `${at + 1} of ${this.list.length}`;
    this.what.dataset.mark = change.kind;
    this.what.replaceChildren(element("b", {}, `${SIGNS[change.kind]} ${change.kind}`), ` ${change.text}`);
    this.app.tab("graph");
    this.queue = this.queue.then(() => this.at === at && this.show(change, side, pane)); // of quick steps only the last
    return this.queue;
  }
  async show(change, side, pane) {
    const id = nearestBox(pane.index, change.after || change.before);
    await pane.select([id], { reveal: true });
    await Promise.all(this.app.panes.map((each) => each.queue));
    this.pair = this.pairOf(change, side);
    pane.centre(pane.selected[0]);
  }
  // A box of each pane that stay next to each other: those of a change, or of the nearest that both graphs have.
  pairOf(change, side) {
    const [pane, other] = [this.app.panes[side], this.app.panes[1 - side]], { index } = pane, id = change.after || change.before;
    const sources = (index.into.get(id) || []).map((edge) => edge.source), users = (index.outOf.get(id) || []).map((edge) => edge.target);
    const near = [id, ...sources, ...users, ...ancestors(index, id).map((box) => box.id)];
    for (const each of near) {
      const there = this.app.counterpart(pane, each, other);
      const visible = [[pane, each], [other, there]].map(([one, box]) => box && framed(one.index, one.state, box));
      if (there && pane.positions.boxes[visible[0]] && other.positions.boxes[visible[1]]) return side ? visible.reverse() : visible;
    }
    return [null, null];
  }
  // How much further right and down the drawing of a pane is than that of another, where both display the same place;
  // where nothing is in both, what each begins with is in the same place.
  shift(pane, other) {
    const places = [pane, other].map((each) => each.positions.boxes[this.pair[each.at]]);
    return places.every(Boolean) ? [places[0][0] - places[1][0], places[0][1] - places[1][1]] : [pane.view.middle - other.view.middle, 0];
  }
}
