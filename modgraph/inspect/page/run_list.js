// The list of runs: sorted by its headings, filtered by words, and by a selection in a chart.

class RunList {
  // `matched` hears which runs the words leave: null for all.
  constructor(place, matched) {
    Object.assign(this, { matched, selected: null, words: [], body: place.querySelector("tbody"), count: place.querySelector("output") });
    this.rows = [...this.body.rows];
    this.heads = [...place.querySelectorAll("th")];
    this.heads.forEach((head, at) => head.firstChild.addEventListener("click", () => this.sort(at)));
    this.filter = place.querySelector("input");
    this.filter.addEventListener("input", () => this.search());
  }
  search() {
    this.words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.draw();
    this.matched(this.words.length ? this.rows.filter((row) => this.hasWords(row)).map((row) => +row.dataset.run) : null);
  }
  hasWords(row) {
    const text = [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();
    return this.words.every((word) => text.includes(word));
  }
  // Keep the runs that a chart selects; null for all.
  select(runs) {
    this.selected = runs;
    this.draw();
  }
  sort(at) {
    const head = this.heads[at], down = head.ariaSort === "ascending", isNumeric = head.className === "numeric";
    this.heads.forEach((each) => (each.ariaSort = null));
    head.ariaSort = down ? "descending" : "ascending";
    const valueOf = (row) => (at > 1 ? row.cells[at].dataset.value : row.cells[at].textContent);
    const compare = (a, b) => (isNumeric ? a - b : a.localeCompare(b, "en", { numeric: true }));
    const order = (a, b) => (a === undefined || b === undefined ? (a === undefined) - (b === undefined) : compare(a, b) * (down ? -1 : 1));
    this.body.append(...this.rows.sort((a, b) => order(valueOf(a), valueOf(b))));
  }
  draw() {
    for (const row of this.rows) row.hidden = !(this.hasWords(row) && (!this.selected || this.selected.includes(+row.dataset.run)));
    const left = this.rows.filter((row) => !row.hidden).length;
    this.count.textContent = left < this.rows.length ? `${left} of ${this.rows.length}` : "";
  }
  // Lead to a run among the others.
  point(run) {
    this.filter.value = "";
    this.selected = null;
    this.search();
    for (const row of this.rows) row.classList.toggle("pointed", +row.dataset.run === run);
    const row = this.rows.find((each) => +each.dataset.run === run);
    row.scrollIntoView({ block: "center" });
    row.focus({ preventScroll: true });
  }
}
