// The page of many runs: tables, curves by row, points of a metric against costs, and the list of runs.

const COSTS = { active_macs: "active MACs per example", seconds: "training time [s]", parameters: "parameters" };

class Rows {
  // The rows of one table: which are displayed, and which one the pointer is at.
  constructor(page) {
    this.page = page;
    this.list = element("ul");
    const set = (text, displayed) => element("button", { type: "button", onclick: () => this.display(displayed) }, text);
    this.all = element("div", { class: "tools" }, set("all", () => true), set("none", () => false));
    this.place = element("div", { class: "legend", role: "group", "aria-label": "rows" }, this.all, this.list);
  }
  choose(layout) {
    this.layout = layout;
    this.rows = layout.series;
    this.displayed = new Set(layout.displayed);
    this.buttons = this.rows.map((row, at) => {
      const emphasise = (on) => () => this.page.emphasise(on ? at : null);
      return element("button", { type: "button", onclick: () => this.toggle(at), onmouseenter: emphasise(true), onmouseleave: emphasise(false), onfocus: emphasise(true), onblur: emphasise(false) },
        swatch(at), element("span", {}, row.name));
    });
    this.list.replaceChildren(...this.buttons.map((button) => element("li", {}, button)));
    this.all.hidden = this.rows.length < 4;
    this.say();
  }
  toggle(at) {
    this.displayed.has(at) ? this.displayed.delete(at) : this.displayed.add(at);
    this.say();
    this.page.draw();
  }
  display(holds) {
    this.displayed = new Set(this.rows.map((_, at) => at).filter(holds));
    this.say();
    this.page.draw();
  }
  say() {
    this.buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(this.displayed.has(at))));
  }
}

class RunsPage {
  constructor(data) {
    this.data = data;
    this.rows = new Rows(this);
    this.drawTables(document.getElementById("tables"));
    this.drawCharts(document.getElementById("charts"));
    this.list = new RunList(this, document.getElementById("runs"));
    const states = [...new Set(data.runs.map((run) => run.state))].map((state) => `${data.runs.filter((run) => run.state === state).length} ${state}`);
    document.querySelector(".counts").textContent = `${data.runs.length} ${data.runs.length === 1 ? "run" : "runs"}: ${states.join(", ")}`;
    followTheme();
  }

  // ------------------------------------------------------------ tables
  drawTables(place) {
    for (const layout of this.data.layouts) {
      const numeric = (at) => (layout.numeric[at] ? "numeric" : undefined);
      const marked = layout.header.map((_, at) => layout.rows.some((row) => row[at].mark));
      const hasP = layout.header.map((_, at) => layout.rows.some((row) => row[at].p));
      const head = layout.header.map((text, at) => element("th", { scope: "col", class: [numeric(at), marked[at] && "marked", hasP[at] && "tested"].filter(Boolean).join(" ") || undefined }, text));
      const above = layout.above ? element("tr", { class: "above" }, layout.keys ? element("td", { colspan: layout.keys }) : null, element("th", { colspan: head.length - layout.keys, scope: "colgroup" }, layout.above)) : null;
      const rows = layout.rows.map((row) => element("tr", {}, row.map((cell, at) => at < layout.keys
        ? element("th", { scope: "row", class: numeric(at) }, cell.text)
        : element("td", { class: [numeric(at), cell.mark === "*" && "best"].filter(Boolean).join(" ") || undefined, title: cell.exact === undefined ? undefined : detailed(cell.exact) }, cell.exact === undefined ? cell.text : counted(cell.exact),
          marked[at] ? element("span", { class: "mark" }, cell.mark) : null, hasP[at] ? element("small", {}, cell.p) : null))));
      const table = element("div", { class: "scroll" }, element("table", { class: "results" }, element("thead", {}, above, element("tr", {}, head)), element("tbody", {}, rows)));
      place.append(element("h2", {}, layout.title), rows.length ? table : "", element("ul", { class: "note" }, layout.notes.map((note) => element("li", {}, note))));
    }
  }

  // ------------------------------------------------------------ charts
  drawCharts(place) {
    const layouts = this.data.layouts.filter((layout) => layout.rows.length), redraw = () => this.draw();
    if (!layouts.length || !(this.data.curves.length || this.data.finals.length)) return place.append(element("p", { class: "muted" }, "There are no metrics of these runs yet."));
    const select = (label, onchange = redraw) => {
      const made = element("select", { onchange, "aria-label": label });
      return [made, element("label", {}, label, made)];
    };
    const check = () => { const made = element("input", { type: "checkbox", onchange: redraw }); return [made, element("label", { class: "check" }, made, "log scale")]; };
    const [byTable, ofTable] = select("rows of", () => { this.choose(layouts[+byTable.value]); redraw(); });
    byTable.append(...layouts.map((each, at) => element("option", { value: at }, each.title)));
    const timed = this.data.runs.some((run) => Object.values(run.curves).some((part) => part.seconds.some((each) => each !== null)));
    const [over, ofOver] = select("over");
    over.append(element("option", { value: "step" }, "steps"), element("option", { value: "seconds" }, "training time"));
    const [curve, ofCurve] = select("metric"), [logCurve, ofLogCurve] = check(), [final, ofFinal] = select("metric at the end"), [logFinal, ofLogFinal] = check();
    const plot = () => element("figure", { class: "plot" });
    Object.assign(this, { curve, over, final, logCurve, logFinal, curvePlot: plot(), points: { active_macs: plot(), seconds: plot() } });
    this.choose(layouts[0]);
    place.append(element("h2", {}, "Curves"), element("div", { class: "tools" }, layouts.length > 1 ? ofTable : null, ofCurve, timed ? ofOver : null, ofLogCurve),
      element("div", { class: "charts" }, this.curvePlot, this.rows.place),
      element("h2", {}, "Metric against cost"), element("div", { class: "tools" }, ofFinal, ofLogFinal),
      element("div", { class: "charts" }, element("div", { class: "pair" }, ...Object.values(this.points))));
    new ResizeObserver(redraw).observe(this.curvePlot);
  }
  // Chooses the rows of a table, among the metrics that its runs have.
  choose(layout) {
    this.rows.choose(layout);
    const runs = layout.series.flatMap((row) => row.runs).map((run) => this.data.runs[run]);
    const offer = (select, names, first) => {
      const kept = names.includes(select.value) ? select.value : first;
      select.replaceChildren(...names.map((name) => element("option", { value: name, selected: name === kept }, name)));
    };
    offer(this.curve, this.data.curves.filter((name) => runs.some((run) => seriesOf(run, name).length)), layout.curve);
    offer(this.final, this.data.finals.filter((name) => runs.some((run) => Number.isFinite(run.metrics[name]))), layout.final);
  }
  draw() {
    this.drawCurves(this.curve.value);
    for (const cost of Object.keys(this.points)) this.drawPoints(cost, this.final.value);
  }
  rowsNow() {
    return this.rows.rows.map((row, at) => [row, at]).filter(([, at]) => this.rows.displayed.has(at));
  }
  drawCurves(metric) {
    const place = this.curvePlot, over = this.over.value;
    const mean = (row) => meanOver(row.runs.map((run) => seriesOf(this.data.runs[run], metric))).map((each) => ({ ...each, at: each[over] })).filter(({ at }) => at !== null);
    const found = this.rowsNow().map(([row, at]) => [at, mean(row)]).filter(([, points]) => points.length);
    if (!found.length) return place.replaceChildren(element("p", { class: "muted" }, metric ? "no run of these rows has this metric over steps" : "no run has metrics over steps"));
    const all = found.flatMap(([, points]) => points), log = this.logCurve.checked;
    const ends = log ? all.map((each) => each.mean) : all.flatMap(({ mean, deviation }) => [mean - deviation, mean + deviation]);
    const width = Math.max(260, place.clientWidth), height = width < 500 ? 280 : 400;
    const frame = makeFrame(width, height, { values: [0, ...all.map((each) => each.at)], label: over === "step" ? "step" : COSTS.seconds, pad: 0.01 }, { values: ends, label: metric, log });
    const drawn = svgElement(["svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `${metric} over ${over === "step" ? "steps" : "training time"}, a curve for each row` }, ...frame.parts, ...found.flatMap(([at, points]) => curveParts(frame, at, points, found.length > 5 ? 0.08 : 0.16))]);
    place.replaceChildren(drawn);
    const whole = new Map(found.map(([at, points]) => [at, Math.max(...points.map((each) => each.count))]));
    const note = [...whole.values()].some((count) => count > 1) ? "Mean over the runs of a row; the band is one standard deviation." : "";
    const parts = found.some(([at, points]) => points.some((each) => each.count < whole.get(at))) ? " Dotted: only some of the row's runs came so far." : "";
    if (note + parts) place.append(element("p", { class: "note" }, note + parts));
    const places = found.flatMap(([row, points]) => points.map((each) => ({ ...each, row, x: frame.x(each.at), y: frame.y(each.mean) })));
    const describe = ({ row, step, seconds, mean, deviation, count }) => [element("b", {}, this.rows.rows[row].name), element("br"),
      `step ${step.toLocaleString("en")}${seconds === null ? "" : `, ${duration(seconds)}`}: ${detailed(mean)}${count > 1 ? ` ± ${compact(deviation)}, ${count} runs` : ""}`];
    followPointer(place, drawn, places, { reach: 40, describe, enter: ({ row }) => this.emphasise(row), leave: () => this.emphasise(null) });
  }
  drawPoints(cost, metric) {
    const place = this.points[cost], heading = element("figcaption", {}, cost === "seconds" ? "against seconds of training" : "against active MACs");
    const found = this.rows.rows.flatMap((row, at) => row.runs.map((run) => ({ row: at, run, cost: this.data.runs[run].costs[cost], value: this.data.runs[run].metrics[metric] })));
    const known = found.filter((each) => Number.isFinite(each.cost) && Number.isFinite(each.value)), say = cost === "seconds" ? duration : compact;
    const problem = !found.some((each) => Number.isFinite(each.value)) ? "no finished run has this metric" : !known.length ? `no run has its ${COSTS[cost]}`
      : known.length > 1 && known.every((each) => each.cost === known[0].cost) ? `all runs have ${say(known[0].cost)} ${COSTS[cost]}` : "";
    if (problem) return place.replaceChildren(heading, element("p", { class: "muted" }, problem));
    const width = Math.max(240, place.clientWidth), height = width < 420 ? 260 : 320, costs = known.map((each) => each.cost);
    const frame = makeFrame(width, height, { values: costs, label: COSTS[cost], log: spansDecade(costs), pad: 0.06 }, { values: known.map((each) => each.value), label: metric, log: this.logFinal.checked, pad: 0.06 });
    const places = known.map((each) => ({ ...each, x: frame.x(each.cost), y: frame.y(each.value) }));
    const marks = places.map(({ row, run, x, y }) => (this.rows.displayed.has(row) ? markAt(row, x, y, 4.6, { "data-row": row, "data-run": run }) : markAt(null, x, y, 3, { class: "mark hidden-row" })));
    const drawn = svgElement(["svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `${metric} against ${COSTS[cost]}, a point for each run` }, ...frame.parts, ...marks]);
    place.replaceChildren(heading, drawn);
    const { runs } = this.data;
    const describe = ({ run, row, ...each }) => [element("b", {}, runs[run].name), element("br"), `${metric} ${detailed(each.value)}`, element("br"), cost === "seconds" ? `trained ${say(each.cost)}` : `${say(each.cost)} ${COSTS[cost]}`];
    const pointed = (run, on) => document.querySelectorAll(`.plot [data-run="${run}"]`).forEach((mark) => mark.classList.toggle("pointed", on));
    followPointer(place, drawn, places, { reach: 24, describe, enter: ({ run }) => pointed(run, true), leave: (left) => left && pointed(left.run, false), choose: ({ run }) => this.list.point(run) });
  }
  emphasise(row) {
    document.querySelectorAll(".plot [data-row]").forEach((part) => part.classList.toggle("faded", row !== null && +part.dataset.row !== row));
  }
}

// The points [step, value, seconds] of a run's metric; its name begins with that of its split.
function seriesOf(run, metric) {
  const dot = metric.indexOf("."), part = run.curves[metric.slice(0, dot)], values = part && part.values[metric.slice(dot + 1)];
  return values ? values.map((value, at) => [part.steps[at], value, part.seconds[at]]).filter(([, value]) => value !== null) : [];
}

// The mean of series at each step, at the mean of the seconds until then.
function meanOver(all) {
  const steps = new Map(), average = (values) => values.reduce((a, b) => a + b, 0) / values.length;
  for (const series of all) for (const point of series) steps.set(point[0], [...(steps.get(point[0]) || []), point]);
  return [...steps].sort(([a], [b]) => a - b).map(([step, points]) => {
    const values = points.map(([, value]) => value), count = values.length, mean = average(values), known = points.every(([, , seconds]) => seconds !== null);
    const deviation = count > 1 ? Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (count - 1)) : 0;
    return { step, seconds: known ? average(points.map(([, , seconds]) => seconds)) : null, mean, deviation, count };
  });
}

// ------------------------------------------------------------ the list of runs

class RunList {
  constructor(page, place) {
    Object.assign(this, { page, columns: [{ title: "run" }, { title: "state" }, ...page.data.columns], sorted: null, down: false });
    this.filter = element("input", { type: "search", placeholder: "words that a run has", "aria-label": "filter runs", oninput: () => this.draw() });
    this.count = element("output", { class: "muted" });
    const head = this.columns.map((column, at) => element("th", { scope: "col", class: at > 1 && column.numeric ? "numeric" : undefined }, element("button", { type: "button", onclick: () => this.sort(at) }, column.title)));
    this.heads = head;
    this.body = element("tbody");
    const cells = page.data.runs.map((run) => run.cells), says = { seconds: () => duration, cost: () => counted, metric: evenly };
    this.say = page.data.columns.map(({ kind }, n) => (says[kind] || (() => detailed))(cells.map((each) => each[n])));
    this.lines = page.data.runs.map((run, at) => this.line(run, at));
    place.append(element("h2", {}, "Runs"), element("div", { class: "tools" }, element("label", {}, "filter", this.filter), this.count),
      element("div", { class: "scroll" }, element("table", { class: "runs" }, element("thead", {}, element("tr", {}, head)), this.body)));
    this.draw();
  }
  line(run, at) {
    const texts = run.cells.map((value, n) => this.say[n](value));
    const cells = texts.map((text, n) => element("td", { class: this.columns[n + 2].numeric ? "numeric" : undefined, title: typeof run.cells[n] === "number" ? String(run.cells[n]) : undefined }, text));
    const name = element("td", { class: "name" }, run.name.split(/(?<=[,/])/).flatMap((part) => [part, element("wbr")]), run.reason ? element("span", { class: "reason" }, run.reason) : null);
    const found = element("tr", { "data-run": at }, name, element("td", {}, element("span", { class: `state-${run.state}` }, run.state)), cells);
    return { row: found, values: [run.name, run.state, ...run.cells], text: [run.name, run.state, run.reason, ...texts].join(" ").toLowerCase() };
  }
  sort(at) {
    this.down = this.sorted === at ? !this.down : false;
    this.sorted = at;
    this.heads.forEach((head, n) => (n === at ? head.setAttribute("aria-sort", this.down ? "descending" : "ascending") : head.removeAttribute("aria-sort")));
    this.draw();
  }
  draw() {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean), at = this.sorted;
    const found = this.lines.filter((line) => words.every((word) => line.text.includes(word)));
    const missing = (value) => value === null || value === undefined || value === "";
    const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
    if (at !== null) found.sort((a, b) => missing(a.values[at]) - missing(b.values[at]) || (missing(a.values[at]) ? 0 : compare(a.values[at], b.values[at]) * (this.down ? -1 : 1)));
    this.body.replaceChildren(...found.map((line) => line.row));
    this.count.textContent = words.length ? `${found.length} of ${this.lines.length}` : "";
  }
  // Displays a run among the others.
  point(run) {
    this.filter.value = "";
    this.draw();
    this.body.querySelectorAll(".pointed").forEach((row) => row.classList.remove("pointed"));
    this.lines[run].row.classList.add("pointed");
    this.lines[run].row.scrollIntoView({ block: "center" });
  }
}

new RunsPage(JSON.parse(document.getElementById("data").textContent));
