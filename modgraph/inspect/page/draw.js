// Positions to a tree of SVG elements: [tag, attributes, ...children], which becomes DOM or text.

function pathOf(points) {
  const round = (value) => Math.round(value * 10) / 10;
  const at = ([x, y]) => `${round(x)} ${round(y)}`;
  let path = `M${at(points[0])}`;
  for (let n = 1; n < points.length - 1; n++) {
    const [before, corner, after] = [points[n - 1], points[n], points[n + 1]];
    const near = (p) => {
      const length = Math.hypot(p[0] - corner[0], p[1] - corner[1]) || 1, cut = Math.min(7, length / 2);
      return [corner[0] + ((p[0] - corner[0]) * cut) / length, corner[1] + ((p[1] - corner[1]) * cut) / length];
    };
    path += `L${at(near(before))}Q${at(corner)} ${at(near(after))}`;
  }
  return path + `L${at(points[points.length - 1])}`;
}

function describe(box) {
  const parts = [box.kind, box.label, box.detail, (box.types || [])[0]];
  if (box.count > 1) parts.push(`${box.count} times`);
  if (box.mark) parts.push(box.mark.kind);
  return parts.filter(Boolean).join(", ");
}

function frame(box, x, y, width, height, isOpen, stacked = 0) {
  const rounded = { input: height / 2, output: height / 2, target: height / 2, loss: 6, route: 14 }[box.kind] || 6;
  const rect = (dx, extra) =>
    ["rect", { class: extra, x: x + dx, y: y + dx, width, height, rx: isOpen ? 10 : rounded }];
  if (box.kind === "router" && !isOpen) {
    const cut = 11;
    const points = [[x + cut, y], [x + width - cut, y], [x + width, y + height / 2], [x + width - cut, y + height], [x + cut, y + height], [x, y + height / 2]];
    return [["polygon", { class: "frame", points: points.map((p) => p.join(",")).join(" ") }]];
  }
  if (!stacked) return [rect(0, "frame")];
  width -= STACKED;
  height -= STACKED;
  return [rect(6, "frame behind"), rect(3, "frame behind"), rect(0, "frame")];
}

function drawBox(index, box, place, state) {
  const [x, y, width, height] = place;
  const isOpen = isGroup(box) && state.open.has(box.id), areModules = !isOpen && isModules(index, box);
  const texts = textsOf(box, isOpen, state);
  const stacked = isStacked(box) && !isOpen && !areModules ? STACKED : 0;
  const inner = { width: width - stacked, height: height - stacked };
  const parts = frame(box, x, y, width, height, isOpen, stacked);
  const isTall = isOpen || areModules;
  if (box.kind === "tokenizer" || box.kind === "pool" || box.kind === "scan")
    parts.push(["rect", { class: "stripe", x, y: y + (isTall ? 10 : 6), width: 4, height: isTall ? Math.min(22, height - 20) : inner.height - 12 }]);
  const left = x + 15 + (isGroup(box) && !state.plain ? 14 : 0);
  const one = !(texts.name || texts.shape) || isTall;
  const line = y + (isTall ? 24 : one ? inner.height / 2 + 4.5 : 18);
  parts.push(["text", { class: "title", x: left, y: line }, texts.title]);
  if (texts.count) {
    const wide = texts.count.length * CHARACTER + 10, at = left + texts.title.length * CHARACTER + 8;
    parts.push(["g", { class: "count", "data-all": box.kind === "repeat" && isOpen ? box.id : undefined },
      ["rect", { x: at, y: line - 13, width: wide, height: 18, rx: 9 }], ["text", { x: at + 5, y: line }, texts.count]]);
  }
  if (isOpen && box.kind !== "block")
    parts.push(["text", { class: "kind", x: x + width - 12, y: y + 23, "text-anchor": "end" }, box.kind === "repeat" ? "" : box.kind]);
  if (areModules && box.count > 1) parts.push(["text", { class: "name", x: left, y: y + 38 }, insideOf(box)]);
  if (!one) {
    if (texts.name) parts.push(["text", { class: "name", x: left, y: y + 34 }, texts.name]);
    if (texts.shape) parts.push(["text", { class: "shape", x: x + inner.width - 14, y: y + 34, "text-anchor": "end" }, texts.shape]);
  }
  if (isGroup(box) && !state.plain) {
    const cx = x + 17, cy = line - 4.5;
    const chevron = isOpen ? `M${cx - 4} ${cy - 2}l4 5l4 -5` : `M${cx - 2} ${cy - 4}l5 4l-5 4`;
    parts.push(["g", { class: "fold", "data-fold": box.id }, ["rect", { class: "hit", x: cx - 12, y: cy - 12, width: 24, height: 24 }], ["path", { d: chevron }]]);
  }
  parts.push(...(areModules ? modules(box, place) : isOpen && isMixture(box) ? [] : bars(box, place, isOpen)));
  parts.push(...signOf(box, place));
  const mark = box.mark ? ` mark-${box.mark.kind}` : "";
  return ["g", { class: `box kind-${box.kind}${isOpen ? " open" : ""}${mark}`, "data-id": box.id, tabindex: "-1", role: "treeitem",
                 "aria-label": describe(box), "aria-expanded": isGroup(box) ? String(isOpen) : undefined },
    ["title", {}, describe(box)], ...parts];
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;
const shareOf = (box, module) => (box.load ? `module ${module}: ${percent(box.load[module])}` : `module ${module}`);

// The places of a pool's modules in a route: [module, x, y, width, height].
function placesOfModules(box, [x, y, width]) {
  return modulesOf(box).map((module, at) => [module, x + 12, y + MODULE.top + at * (MODULE.height + MODULE.gap), width - 24, MODULE.height]);
}

// The modules of a pool in a route, each with its share of the load.
function modules(box, place) {
  const most = Math.max(...(box.load || []), 1e-9);
  return placesOfModules(box, place).flatMap(([module, x, y, width, height]) => {
    if (module < 0) return [["text", { class: "name", x: x + width / 2, y: y + 13, "text-anchor": "middle" }, `⋮`]];
    const load = box.load && ["rect", { class: "load", "data-module": module, x, y: y + height - 3, width: Math.max(0.5, (width * box.load[module]) / most), height: 3 }, ["title", {}, shareOf(box, module)]];
    return [["rect", { class: "module", "data-module": module, x, y, width, height, rx: 4 }, ["title", {}, shareOf(box, module)]],
      ["text", { class: "name", x: x + 8, y: y + 14 }, `module ${module}`],
      ...(load ? [["text", { class: "name", x: x + width - 6, y: y + 14, "text-anchor": "end" }, `${Math.round(100 * box.load[module])} %`], load] : [])];
  });
}

// The bars of a pool's load: the share of each module, under its title.
function bars(box, [x, y, width, height], isOpen) {
  const shares = box.load || [];
  if (!shares.length) return [];
  const stacked = box.count > 1 ? 6 : 0, most = Math.max(...shares, 1e-9);
  const each = Math.min(14, (width - 24 - stacked) / shares.length), base = y + height - 5 - (isOpen ? 0 : stacked);
  return shares.map((share, at) => ["rect", { class: "load", "data-module": at, x: x + 12 + at * each, y: base - (9 * share) / most,
    width: Math.max(1, each - 1.5), height: Math.max(0.5, (9 * share) / most) }, ["title", {}, shareOf(box, at)]]);
}

function drawEdge(edge, points) {
  const kinds = { data: "arrow", length: "arrow", uses: "arrow-uses", carry: "arrow" };
  const words = edge.edges.map((one) => `${one.source} → ${one.target}${one.slot ? ` (${one.slot})` : ""}${one.type ? `: ${one.type}` : ""}`);
  const lines = words.length > 8 ? [...words.slice(0, 8), `and ${words.length - 8} more`] : words;
  return ["path", { class: `edge edge-${edge.kind}`, d: pathOf(points), "marker-end": `url(#${kinds[edge.kind]})`,
                    "data-source": edge.source, "data-target": edge.target }, ["title", {}, lines.join("\n")]];
}

// What goes through each module, along the edge from a pool to a route: the wider, the more.
function strands(index, edge, points) {
  const route = index.boxes.get(edge.target), shares = edge.edges.some((one) => one.slot === "pool") ? route.load : null;
  if (!shares || shares.length > 32) return [];
  const widths = shares.map((share) => 12 * share), gap = 1.5;
  const whole = widths.reduce((sum, width) => sum + width + gap, -gap);
  let at = -whole / 2;
  return shares.map((share, module) => {
    const middle = at + widths[module] / 2;
    at += widths[module] + gap;
    return ["path", { class: "edge strand", "data-module": module, "data-source": edge.source, "data-target": edge.target, d: pathOf(points), transform: `translate(${middle} ${-Math.abs(middle) / 2})`, "stroke-width": Math.max(0.4, widths[module]) },
      ["title", {}, shareOf(route, module)]];
  });
}

const MOST_STRANDS = 8;

// The gates of a route: a strand from its router to each module, as wide as the module's share where that is known.
function gates(index, edge, positions, state) {
  const [x, y, width, height] = positions.boxes[edge.source], pool = index.boxes.get(edge.target), route = index.parents.get(edge.target);
  const [left, top, , high] = positions.boxes[edge.target], start = [x + width, y + height / 2], load = pool.load || route.load;
  const count = pool.count > 1 ? pool.count : pool.children.length, visible = Math.min(count, MOST_STRANDS);
  const folded = state.open.has(pool.id) ? null : placesOfModules(pool, positions.boxes[edge.target]).filter(([module]) => module >= 0);
  const ends = folded ? folded.map(([module, at, down, , tall]) => [module, at, down + tall / 2])
    : [...Array(visible).keys()].map((at) => [at, left, top + 40 + ((high - 56) * (at + 0.5)) / visible]);
  return ends.map(([module, endX, endY]) => {
    const middle = (start[0] + left) / 2, share = load ? load[module] : null;
    return ["path", { class: "edge strand gate", "data-module": module, "data-source": edge.source, "data-target": edge.target, d: pathBetween(start, middle, [endX, endY]), "stroke-width": share === null ? 1.5 : 0.8 + 11 * share },
      ["title", {}, load ? shareOf({ load }, module) : `gate of module ${module}`]];
  });
}

function pathBetween([x, y], middle, [endX, endY]) {
  return `M${x} ${y}C${middle} ${y} ${middle} ${endY} ${endX} ${endY}`;
}

// Where values enter an unfolded route.
function tokens(index, state, id, [x, y, width, height]) {
  const box = index.boxes.get(id.slice(0, -TOKENS.length)), route = isMixture(box) ? box : index.parents.get(box.id);
  const edge = (index.into.get(route.id) || []).find((one) => one.slot === "tokens"), shape = edge && !isWithout(state, "shapes") ? edge.short || "" : "";
  return ["g", { class: "tokens" }, ["rect", { class: "frame", x, y, width, height, rx: height / 2 }],
    ["text", { class: "title", x: x + width / 2, y: y + (shape ? 19 : 27), "text-anchor": "middle" }, "tokens"],
    ["text", { class: "shape", x: x + width / 2, y: y + 34, "text-anchor": "middle" }, shortened(shape, 10)]];
}

function markers() {
  const marker = (id, kind) => ["marker", { id, class: kind, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto" }, ["path", { d: "M0 .8L7.2 4L0 7.2z" }]];
  return ["defs", {}, marker("arrow", "head"), marker("arrow-uses", "head uses")];
}

// All of a drawing: the grounds of unfolded boxes, outer ones first, then edges, then frames and texts.
function drawing(index, state, positions) {
  const boxes = index.order.filter((box) => positions.boxes[box.id]);
  const edges = new Map(visibleEdges(index, state).map((edge) => [edge.id, edge]));
  const open = (box) => isGroup(box) && state.open.has(box.id);
  const lines = positions.edges.map(({ id, points }) => [edges.get(id), points]).filter(([edge, points]) => edge && points.length).map(([edge, points]) =>
    ["g", {}, ...(edge.kind === "gates" ? gates(index, edge, positions, state) : [...strands(index, edge, points), drawEdge(edge, points)])]);
  const ground = (box) => ["g", { class: `ground kind-${box.kind} open` }, ...frame(box, ...positions.boxes[box.id], true).map(([tag, given]) => [tag, { ...given, "data-id": box.id }])];
  const draw = (box) => drawBox(index, box, positions.boxes[box.id], state);
  return ["g", { class: `drawing${state.plain ? " plain" : ""}`, role: "tree", "aria-label": index.scene.name }, markers(),
    ["g", {}, ...boxes.filter(open).map(ground)], ["g", { class: "edges" }, ...lines],
    ["g", {}, ...boxes.map(draw), ...Object.entries(positions.tokens || {}).map(([id, place]) => tokens(index, state, id, place))]];
}
