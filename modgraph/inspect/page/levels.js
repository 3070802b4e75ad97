// A pane without ELK: its layouts were made beforehand, one for each of a few levels of folding, from coarse to fine.

class LevelPane extends Pane {
  constructor(app, data, at) {
    super(app, data, at);
    this.draw(data.levels[data.first]);
  }
  draw({ state, laid }) {
    Object.assign(this, { state: { open: new Set(state.open), all: new Set(state.all) }, laid });
    this.level = this.data.levels.findIndex((level) => level.laid === laid);
    this.view.size = [laid.width, laid.height];
    this.svg.replaceChildren(svgElement(drawing(this.index, this.state, laid)));
    this.settle();
  }
  // The nearest level in which what has just been folded or unfolded is so; `anchor` stays where it is on the screen.
  async redraw(anchor) {
    const { levels } = this.data, now = new Set(levels[this.level].state.open), before = anchor && this.laid.boxes[anchor];
    const changed = [...new Set([...now, ...this.state.open])].filter((id) => now.has(id) !== this.state.open.has(id));
    const fits = ({ state }) => changed.every((id) => state.open.includes(id) === this.state.open.has(id));
    const found = levels.map((_, at) => at).filter((at) => fits(levels[at])).sort((a, b) => Math.abs(a - this.level) - Math.abs(b - this.level));
    const end = this.state.open.size > now.size ? levels.length - 1 : 0;
    this.draw(levels[found.length ? found[0] : end]);
    const after = anchor && this.laid.boxes[anchor];
    if (before && after) this.view.pan((before[0] - after[0]) * this.view.scale, (before[1] - after[1]) * this.view.scale);
    this.view.show(true);
  }
}
