// Plots of runs: scales, axes, curves with bands, and points. They are drawn at the width that the page gives them.

const COLOURS = 8, SHAPES = ["circle", "square", "triangle", "diamond"];

// ------------------------------------------------------------ numbers

// Three significant digits: 1.23M, 45.6k, 0.00123.
function compact(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return value === null || value === undefined ? "" : String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e15)) return value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
  for (const [power, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (+size.toPrecision(3) >= power) return +(value / power).toPrecision(3) + unit;
  return String(+value.toPrecision(3));
}

// A number of things: whole up to a million.
const counted = (value) => (Number.isInteger(value) && Math.abs(value) < 1e6 ? value.toLocaleString("en") : compact(value));

function detailed(value) {
  if (typeof value !== "number") return String(value ?? "");
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return Math.abs(value) >= 1e-3 && Math.abs(value) < 1e6 ? String(+value.toPrecision(4)) : compact(value);
}

// Formats the numbers of a column with equally many digits after the point, four significant ones of the largest.
function evenly(values) {
  const known = values.filter(Number.isFinite), largest = Math.max(...known.map(Math.abs), 0);
  const digits = known.every(Number.isInteger) ? 0 : Math.max(0, 4 - Math.max(0, Math.floor(Math.log10(largest)) + 1));
  return (value) => !Number.isFinite(value) ? "" : value !== 0 && Math.abs(value) < 10 ** -digits ? compact(value) : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function duration(seconds) {
  if (typeof seconds !== "number") return "";
  if (seconds < 60) return `${+seconds.toPrecision(3)} s`;
  const minutes = seconds / 60;
  return minutes < 60 ? `${+minutes.toPrecision(3)} min` : `${+(minutes / 60).toPrecision(3)} h`;
}

const within = (ticks, low, high) => ticks.filter((tick) => tick >= low * (1 - 1e-9) - 1e-300 && tick <= high * (1 + 1e-9));

function linearTicks(low, high, most) {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough * (1 - 1e-9));
  const first = Math.ceil(low / step - 1e-9), count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: count }, (_, at) => +((first + at) * step).toPrecision(12));
}

function logTicks(low, high, most) {
  const decades = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) decades.push(power);
  for (const parts of [[1, 2, 5], [1, 3], [1]]) {
    const ticks = within(decades.flatMap((power) => parts.map((part) => +(part * 10 ** power).toPrecision(3))), low, high);
    if (ticks.length <= most) return ticks;
  }
  const every = Math.ceil(decades.length / most);
  return within(decades.filter((power) => power % every === 0).map((power) => 10 ** power), low, high);
}

// From values to places [from, to]; with `log` only values above zero have one.
function makeScale(values, [from, to], { log = false, most = 6, pad = 0.04 } = {}) {
  const turn = log ? Math.log10 : (value) => value, back = log ? (value) => 10 ** value : (value) => value;
  const known = values.filter((value) => Number.isFinite(value) && (!log || value > 0)).map(turn);
  let low = known.reduce((a, b) => Math.min(a, b), Infinity), high = known.reduce((a, b) => Math.max(a, b), -Infinity);
  if (!known.length) [low, high] = [0, 1];
  if (high === low) [low, high] = log ? [low - 0.3, high + 0.3] : [low - (Math.abs(low) || 1) * 0.1, high + (Math.abs(high) || 1) * 0.1];
  const room = (high - low) * pad;
  [low, high] = [low - room, high + room];
  const at = (value) => from + ((Math.max(low, Math.min(high, log && value <= 0 ? low : turn(value))) - low) / (high - low)) * (to - from);
  const ticks = (log ? logTicks : linearTicks)(back(low), back(high), most);
  return { at, ticks, log };
}

const spansDecade = (values) => {
  const known = values.filter((value) => value > 0), most = Math.max(...known), least = Math.min(...known);
  return known.length === values.length && most / least > 10;
};

// ------------------------------------------------------------ parts of a plot

const colourOf = (row) => (row === null ? "var(--muted)" : `var(--row-${row % COLOURS})`);
const dashOf = (row) => [undefined, "7 3", "2 3", "9 3 2 3"][Math.floor(row / COLOURS) % 4];
const shapeOf = (row) => SHAPES[(row + Math.floor(row / COLOURS)) % SHAPES.length];

function markAt(row, x, y, size, more = {}, ...children) {
  const [a, b] = [x.toFixed(1), y.toFixed(1)], round = (each) => each.toFixed(1);
  const path = {
    square: () => `M${round(x - size * 0.88)} ${round(y - size * 0.88)}h${round(size * 1.76)}v${round(size * 1.76)}h${round(-size * 1.76)}z`,
    triangle: () => `M${a} ${round(y - size * 1.2)}L${round(x + size * 1.1)} ${round(y + size * 0.85)}H${round(x - size * 1.1)}z`,
    diamond: () => `M${a} ${round(y - size * 1.25)}L${round(x + size * 1.25)} ${b}L${a} ${round(y + size * 1.25)}L${round(x - size * 1.25)} ${b}z`,
  }[row === null ? "circle" : shapeOf(row)];
  const common = { class: "mark", fill: colourOf(row), ...more };
  return path ? ["path", { ...common, d: path() }, ...children] : ["circle", { ...common, cx: a, cy: b, r: size }, ...children];
}

function swatch(row) {
  return svgElement(["svg", { class: "swatch", viewBox: "0 0 26 12", "aria-hidden": "true" },
    ["line", { x1: 0, x2: 26, y1: 6, y2: 6, stroke: colourOf(row), "stroke-width": 2, "stroke-dasharray": dashOf(row) }],
    markAt(row, 13, 6, 4)]);
}

// The axes of a plot, and its scales: `x` and `y` are { values, label, log, format }.
function makeFrame(width, height, x, y) {
  const lines = [18, height - 40], guess = makeScale(y.values, [lines[1], lines[0]], { log: y.log, most: height / 42 });
  const format = (axis) => axis.format || compact;
  const left = 14 + 6.6 * Math.max(3, ...guess.ticks.map((tick) => format(y)(tick).length));
  const xs = makeScale(x.values, [left, width - 14], { log: x.log, most: Math.max(2, (width - left) / 74), pad: x.pad ?? 0.04 });
  const rows = guess.ticks.flatMap((tick) => [["line", { class: "grid", x1: left, x2: width - 14, y1: guess.at(tick), y2: guess.at(tick) }],
    ["text", { x: left - 7, y: guess.at(tick) + 4, "text-anchor": "end" }, format(y)(tick)]]);
  const columns = xs.ticks.flatMap((tick) => [["line", { class: "axis", x1: xs.at(tick), x2: xs.at(tick), y1: lines[1], y2: lines[1] + 4 }],
    ["text", { x: xs.at(tick), y: lines[1] + 17, "text-anchor": "middle" }, format(x)(tick)]]);
  const said = (axis) => axis.label + (axis.log ? " (log scale)" : "");
  const labels = [["text", { class: "label", x: (left + width - 14) / 2, y: height - 6, "text-anchor": "middle" }, said(x)], ["text", { class: "label", x: 0, y: 10 }, said(y)]];
  const axis = [["path", { class: "axis", d: `M${left} ${lines[0]}V${lines[1]}H${width - 14}` }]];
  return { x: xs.at, y: guess.at, parts: [...rows, ...columns, ...axis, ...labels] };
}

const pathOf = (places) => places.map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

// Runs of neighbours for which a condition holds; each begins with the point before it if `joined`.
function stretches(points, holds, joined = false) {
  const found = [];
  points.forEach((point, at) => {
    if (!holds(point)) return;
    if (at && holds(points[at - 1])) found[found.length - 1].push(point);
    else found.push(joined && at ? [points[at - 1], point] : [point]);
  });
  return found;
}

// A row's mean over its runs at each place `at`, with a band; dots where only some of its runs have a value.
function curveParts(frame, row, points, opacity) {
  const at = (each) => [frame.x(each.at), frame.y(each.mean)], whole = Math.max(...points.map((each) => each.count));
  const own = { "data-row": row }, stroke = { stroke: colourOf(row), ...own };
  const band = (part) => pathOf([...part.map((each) => [frame.x(each.at), frame.y(each.mean + each.deviation)]),
    ...part.map((each) => [frame.x(each.at), frame.y(each.mean - each.deviation)]).reverse()]) + "z";
  const bands = stretches(points, (each) => each.count > 1).map((part) => ["path", { class: "band", fill: colourOf(row), opacity, d: band(part), ...own }]);
  const full = stretches(points, (each) => each.count === whole).map((part) => part.length > 1
    ? ["path", { class: "line", "stroke-dasharray": dashOf(row), d: pathOf(part.map(at)), ...stroke }] : markAt(row, ...at(part[0]), 4, own));
  const rest = stretches(points, (each) => each.count < whole, true).map((part) => ["path", { class: "line part", d: pathOf(part.map(at)), ...stroke }]);
  return [...bands, ...rest, ...full];
}

// ------------------------------------------------------------ what the pointer is at

// Displays what `describe` says of the nearest of `places` ({ x, y, … }) within `reach` pixels.
function followPointer(plot, svg, places, { reach, describe, enter = () => {}, leave = () => {}, choose = () => {} }) {
  const tip = element("div", { class: "tip", hidden: true });
  plot.append(tip);
  let now = null;
  const nearest = (event) => {
    const box = svg.getBoundingClientRect(), [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const measured = places.map((place) => [Math.hypot(place.x - x, place.y - y), place]);
    const [distance, place] = measured.reduce((a, b) => (b[0] < a[0] ? b : a), [Infinity, null]);
    return distance <= reach ? place : null;
  };
  const show = (place) => {
    if (place === now) return;
    leave(now);
    now = place;
    tip.hidden = !place;
    if (!place) return;
    enter(place);
    tip.replaceChildren(...describe(place));
    const left = place.x + 14 + tip.offsetWidth > plot.clientWidth ? place.x - 14 - tip.offsetWidth : place.x + 14;
    tip.style.left = `${Math.max(0, left)}px`;
    const above = svg.getBoundingClientRect().top - plot.getBoundingClientRect().top;
    tip.style.top = `${Math.max(0, above + place.y - tip.offsetHeight - 8)}px`;
  };
  svg.addEventListener("pointermove", (event) => show(nearest(event)));
  svg.addEventListener("pointerleave", () => show(null));
  svg.addEventListener("click", (event) => {
    const place = nearest(event);
    show(place);
    if (place) choose(place);
  });
}
