// Charts of values that a bundle computes in the page, drawn anew at every input, where Vega would take too long.

const SERIES = ["--accent", "--pool-line", "--tokenizer-line", "--loss-line", "--router-line", "--output-line", "--scan-line", "--input-line"];

function heatmap({ rows, columns, values, most: given }) {
  const most = Math.max(...values.flat(), given, 1e-12), cell = 26, left = 12 + 6.6 * Math.max(...rows.map((row) => row.length), 1);
  const top = 14 + 6.6 * Math.min(14, Math.max(...columns.map((each) => each.length), 1));
  const parts = values.flatMap((line, y) => line.map((value, x) => ["rect", { x: left + x * cell, y: top + y * cell, width: cell - 1, height: cell - 1, rx: 2,
    fill: "var(--accent)", "fill-opacity": Math.max(0.04, value / most) }, ["title", {}, `${rows[y]}, ${columns[x]}: ${shownNumber(value)}`]]));
  const names = rows.map((row, y) => ["text", { x: left - 6, y: top + y * cell + 17, "text-anchor": "end" }, row]);
  const heads = columns.map((column, x) => ["text", { transform: `translate(${left + x * cell + 17} ${top - 6}) rotate(-90)` }, shortened(column, 14)]);
  const [width, height] = [left + columns.length * cell + 4, top + rows.length * cell + 4];
  return svgElement(["svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img" }, ...parts, ...names, ...heads]);
}

function curves({ series, x_label }) {
  const width = 520, height = 220, left = 56, bottom = 34, points = series.flatMap((each) => each.points).filter(([, y]) => Number.isFinite(y));
  if (!points.length) return element("p", { class: "muted" }, "nothing was recorded");
  const span = (values) => { const low = Math.min(...values), high = Math.max(...values); return [low, high === low ? low + 1 : high]; };
  const [x0, x1] = span(points.map(([x]) => x)), [y0, y1] = span(points.map(([, y]) => y));
  const at = ([x, y]) => [left + ((x - x0) / (x1 - x0)) * (width - left - 12), 10 + (1 - (y - y0) / (y1 - y0)) * (height - 10 - bottom)];
  const grid = [0, 0.5, 1].flatMap((part) => {
    const value = y0 + part * (y1 - y0), [, y] = at([x0, value]);
    return [["line", { class: "grid", x1: left, x2: width - 12, y1: y, y2: y }], ["text", { x: left - 6, y: y + 4, "text-anchor": "end" }, shownNumber(+value.toPrecision(3))]];
  });
  const ends = [[x0, "start", left], [x1, "end", width - 12]].map(([value, anchor, x]) => ["text", { x, y: height - 16, "text-anchor": anchor }, shownNumber(value)]);
  const lines = series.map((each, n) => {
    const places = each.points.filter(([, y]) => Number.isFinite(y)).map(at);
    return ["path", { class: "series", stroke: `var(${SERIES[n % SERIES.length]})`, d: places.map((p, k) => `${k ? "L" : "M"}${p.map((v) => v.toFixed(1)).join(" ")}`).join("") + (places.length === 1 ? "h3" : "") }, ["title", {}, each.name]];
  });
  const key = element("p", { class: "muted" }, series.flatMap((each, n) => {
    const dot = element("span", {}, "● ");
    dot.style.color = `var(${SERIES[n % SERIES.length]})`;
    return [dot, `${each.name}  `];
  }));
  return element("div", {}, svgElement(["svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img" }, ...grid, ...lines, ...ends,
    ["text", { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, x_label || ""]]), key);
}
