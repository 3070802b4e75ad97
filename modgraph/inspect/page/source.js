// The spec next to the drawing, line by line.

const WORDS = new Set(("block model module pool router repeat in if else import from input target output loss tokenizer " +
  "scan as with yield for frozen grow by true false moved").split(" "));

// A line in coloured pieces: comment, string, keyword, number, plain.
function pieces(text) {
  const found = text.match(/#.*|"(?:[^"\\]|\\.)*"?|[A-Za-z_]\w*|\d[\w.]*|\s+|./gu) || [];
  const kind = (piece) =>
    piece[0] === "#" ? "comment" : piece[0] === '"' ? "string" : WORDS.has(piece) ? "word" : /^\d/.test(piece) ? "digit" : "";
  return found.map((piece) => (kind(piece) ? element("span", { class: kind(piece) }, piece) : piece));
}

class SourcePane {
  constructor(pane, sources, choose) {
    Object.assign(this, { pane, sources, choose, displayed: null, lines: [] });
    this.place = element("div", { class: "source", role: "listbox", "aria-label": "source", tabindex: "-1" });
    this.byLine = new Map(sources.map((source) => [source.name, linesOf(pane.index, source)]));
    if (sources.length) this.show(sources[0].name);
  }
  show(name) {
    if (this.displayed === name) return;
    this.displayed = name;
    const source = this.sources.find((each) => each.name === name);
    const options = this.sources.map((each) => element("option", { value: each.name, selected: each.name === name }, each.name));
    const select = element("select", { "aria-label": "file", onchange: (event) => this.show(event.target.value) }, options);
    const byLine = this.byLine.get(name);
    this.lines = source.text.split("\n").map((text, at) => this.line(text.replace(/\r$/, ""), at + 1, byLine.get(at + 1)));
    this.place.replaceChildren(...(this.sources.length > 1 ? [select] : []), ...this.lines);
  }
  line(text, number, ids) {
    const take = () => ids && this.choose(ids);
    const keys = (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) this.step(number, step);
      else if (event.key === "Enter" || event.key === " ") take();
      else return;
      event.preventDefault();
      event.stopPropagation();
    };
    const first = ids && !this.tabbed;
    if (first) this.tabbed = true;
    return element("div", { class: ids ? "line" : "line plain", role: "option", "data-line": number, tabindex: ids ? (first ? "0" : "-1") : undefined, onclick: take, onkeydown: keys },
      element("span", { class: "number", "aria-hidden": "true" }, String(number)), this.text(text));
  }
  // The rest of a long line is below its beginning, indented further.
  text(text) {
    const start = /^ */.exec(text)[0], place = element("span", { class: "text" }, element("span", { class: "start" }, start), pieces(text.slice(start.length)));
    place.style.setProperty("--indent", `${Math.min(start.length + 4, 8)}ch`);
    return place;
  }
  step(number, step) {
    for (let at = number - 1 + step; this.lines[at]; at += step)
      if (this.lines[at].tabIndex > -2 && !this.lines[at].classList.contains("plain")) return this.lines[at].focus();
  }
  // Highlight the lines of some boxes, and scroll to the first.
  mark(boxes) {
    const found = boxes.map((box) => box.lines).filter(Boolean);
    if (found.length) this.show(found[0].source);
    const here = (number) => found.some((each) => each.source === this.displayed && each.first <= number && number <= each.last);
    this.lines.forEach((line, at) => {
      line.classList.toggle("here", here(at + 1));
      line.setAttribute("aria-selected", String(here(at + 1)));
    });
    if (!found.length || !this.place.clientHeight) return;
    const line = this.lines[found[0].first - 1], top = line.offsetTop - this.place.offsetTop;
    if (top < this.place.scrollTop || top > this.place.scrollTop + this.place.clientHeight - 40)
      this.place.scrollTop = top - this.place.clientHeight / 3;
  }
}

// The boxes on each line: the smallest there, one for all equal repetitions.
function linesOf(index, source) {
  const found = new Map(), copies = new Set();
  for (const box of index.order) {
    const outer = index.parents.get(box.id);
    if (box.alike || (outer && copies.has(outer.id))) copies.add(box.id);
    if (copies.has(box.id) || !box.lines || box.lines.source !== source.name) continue;
    if (isGroup(box) && !["pool", "scan"].includes(box.kind)) continue;
    for (let line = box.lines.first; line <= box.lines.last; line++) {
      if (!found.has(line)) found.set(line, []);
      found.get(line).push(box.id);
    }
  }
  const length = (id) => { const { first, last } = index.boxes.get(id).lines; return last - first; };
  for (const [line, ids] of found) {
    const least = Math.min(...ids.map(length));
    found.set(line, ids.filter((id) => length(id) === least));
  }
  return found;
}
