// A pane without ELK: its layouts were made beforehand, one for each of a few levels of folding, from coarse to fine.

class LevelPane extends Pane {
  constructor(app, data, at) {
    super(app, data, at);
    this.draw(data.levels[data.first]);
  }
  draw({ state, positions }) {
    Object.assign(this, { state: copyOf(state), positions });
    this.level = this.data.levels.findIndex((level) => level.positions === positions);
    this.measure();
    this.svg.replaceChildren(svgElement(drawing(this.index, this.state, positions)));
    this.settle();
  }
  // The finest level that can be read where there is less room than the page was made for.
  async fitFolds() {
    const { levels, first } = this.data, room = (this.canvas.clientWidth - 24) / READABLE;
    if (this.positions.width <= room || !this.canvas.clientWidth) return;
    const fitting = levels.slice(0, first).filter(({ positions }) => positions.width <= room);
    this.draw(fitting.length ? fitting[fitting.length - 1] : levels[0]);
    this.view.fit(true);
  }
  // The nearest level in which what has just been folded or unfolded is so; `anchor` stays where it is on the screen.
  async redraw(anchor) {
    const { levels } = this.data, now = new Set(levels[this.level].state.open), before = anchor && this.positions.boxes[anchor];
    const changed = [...new Set([...now, ...this.state.open])].filter((id) => now.has(id) !== this.state.open.has(id));
    const fits = ({ state }) => changed.every((id) => state.open.includes(id) === this.state.open.has(id));
    const found = levels.map((_, at) => at).filter((at) => fits(levels[at])).sort((a, b) => Math.abs(a - this.level) - Math.abs(b - this.level));
    const end = this.state.open.size > now.size ? levels.length - 1 : 0;
    this.draw(levels[found.length ? found[0] : end]);
    const after = anchor && this.positions.boxes[anchor];
    if (before && after) this.view.pan((before[0] - after[0]) * this.view.scale, (before[1] - after[1]) * this.view.scale);
    this.view.show(true);
  }
}
