// The page of many runs: what its controls choose fills the descriptions of the charts.

class RunCharts {
  constructor(data, form, list) {
    Object.assign(this, { data, form, list, views: {}, queue: Promise.resolve() });
    this.legends = [...form.querySelectorAll("fieldset")];
    form.addEventListener("input", (event) => this.follow(event.target));
    for (const button of form.querySelectorAll("[data-rows]")) button.addEventListener("click", () => this.choose(button.dataset.rows === "all"));
    this.legends.forEach((legend, at) => [...legend.children].forEach((label, row) => this.colour(label, data.tables[at], row)));
    let width = 0;
    new ResizeObserver(([{ contentRect }]) => contentRect.width !== width && (width = contentRect.width) && this.draw()).observe(form);
  }
  // A label of a legend: its colour, and the curve that is emphasised while the pointer or the focus is there.
  colour(label, table, row) {
    label.querySelector("b").style.color = table.colours.range[row];
    for (const [event, name] of [["pointerenter", table.rows[row]], ["pointerleave", null], ["focusin", table.rows[row]], ["focusout", null]])
      label.addEventListener(event, () => this.views.curves?.signal("pointed", name).run());
  }
  follow(control) {
    const { log_x } = this.form.elements;
    if (control.name === "x") log_x.checked = "log" in control.selectedOptions[0].dataset;
    if (control.name === "table") this.legends.forEach((legend, at) => (legend.disabled = at !== +control.value));
    this.draw();
  }
  choose(isChecked) {
    for (const box of this.form.querySelectorAll("fieldset:enabled input")) box.checked = isChecked;
    this.draw();
  }
  draw() {
    this.queue = this.queue.then(async () => {
      const { charts, records } = this.describe();
      for (const [name, chart] of Object.entries(charts)) await this.drawOne(name, chart, records);
    });
  }
  // What the controls choose, and the records of the table's rows.
  describe() {
    const { data, form } = this, fields = new FormData(form), choice = Object.fromEntries(fields);
    const { runs, displayed: first, ...table } = data.tables[choice.table ?? 0], { curve = "", over, x = "", y = "", colour } = choice;
    const displayed = fields.getAll("row").map((row) => table.rows[row]), dot = curve.indexOf(".");
    const records = table.rows.flatMap((row, at) => runs[at].map((run) => ({ row, ...data.records[run] })));
    const scale = (axis, name) => ({ [`log_${axis}`]: name in choice, [`${axis}_scale`]: data.scales[name in choice ? "log" : "linear"] });
    const text = (name) => form.elements[name].selectedOptions[0]?.text ?? "";
    const title = (name, log) => text(name) + (choice[log] ? " (log scale)" : "");
    const [split, metric] = [curve.slice(0, dot), curve.slice(dot + 1)];
    const curves = { ...table, displayed, split, metric, over, ...scale("y", "log_curve"), x_title: text("over"), y_title: title("curve", "log_curve"), legend: null };
    const colours = colour ? { ...data.colours[colour], legend: { orient: "bottom" } } : { kind: "nominal", colours: table.colours, legend: null };
    const points = { ...table, ...colours, displayed, x, y, colour, x_name: text("x"), y_name: y, ...scale("x", "log_x"), ...scale("y", "log_y"), x_title: title("x", "log_x"), y_title: title("y", "log_y") };
    return { records, charts: { curves, points } };
  }
  async drawOne(name, choices, records) {
    const place = this.form.querySelector(`figure.${name}`), values = records.filter((record) => HAS_DATA[name](record, choices));
    this.views[name]?.finalize();
    this.views[name] = null;
    if (!values.length) return place.replaceChildren(element("p", { class: "muted" }, NONE[name]));
    const spec = fill(this.data[name], { ...choices, width: place.clientWidth });
    const view = (this.views[name] = await drawChart(place, { ...spec, data: { values } }, this.data.config));
    if (name === "points") this.connect(view, values, choices);
  }
  // Lead from points to runs: a click to one, a rectangle to those in it.
  connect(view, values, { x, y }) {
    const within = ([low, high], value) => value >= low && value <= high;
    view.addEventListener("click", (event, item) => item?.datum?.run !== undefined && this.list.point(item.datum.run));
    view.addSignalListener("brush", (signal, brush) =>
      this.list.select(brush.x ? values.filter((each) => within(brush.x, each.values[x]) && within(brush.y, each.values[y])).map(({ run }) => run) : null));
  }
  match(runs) {
    this.views.points?.signal("matched", runs).run();
  }
}

const isUsable = (value, log) => Number.isFinite(value) && (!log || value > 0);
const HAS_DATA = {
  curves: ({ row, curves }, { displayed, split, metric, over, log_y }) => displayed.includes(row) && curves[split]?.values[metric]?.some((value, at) =>
    isUsable(value, log_y) && (over === "step" || curves[split].seconds[at] !== null)),
  points: ({ values }, { x, y, log_x, log_y }) => isUsable(values[x], log_x) && isUsable(values[y], log_y),
};
const NONE = { curves: "no run of these rows has this metric here", points: "no finished run has both numbers" };

followTheme();
const form = document.querySelector("form"), list = new RunList(document.getElementById("runs"), (runs) => charts?.match(runs));
const charts = form && new RunCharts(JSON.parse(document.getElementById("data").textContent), form, list);
