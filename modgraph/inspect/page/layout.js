// What is visible, as a graph for ELK; text is monospace, so that every machine measures it equally.

const CHARACTER = 7.23, SMALL = 6.63; // widths of characters in a drawing, of titles and below them
const LONGEST = 34, SHORT = 20; // characters of a line in a box, and in the router and the pool of a route

function shortened(text, most) {
  return text.length > most ? text.slice(0, most - 1) + "…" : text;
}

const withoutSettings = (call) => call.split("(")[0];

function amount(count) {
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e3]])
    if (count >= size) return (count / size).toPrecision(3).replace(/\.?0+$/, "") + unit;
  return String(count);
}

// The lines of text in a box: what it does, what it is called, what comes out.
function textsOf(box, isOpen, state) {
  const does = ["op", "tokenizer", "router", "output"].includes(box.kind) && box.detail;
  const isLong = box.kind === "router" && does && does.length > SHORT;
  const title = shortened(isLong ? withoutSettings(does) : does || box.label, LONGEST);
  const called = does ? shortened(stripOp(does, box.label), LONGEST) : "";
  if (isGroup(box)) {
    const count = box.count > 1 ? `× ${box.count}` : "";
    const weights = box.counts && box.counts.parameters && !isWithout(state, "parameters") ? `${amount(box.counts.parameters)} parameters` : "";
    return { title, name: isOpen ? "" : [box.kind === "block" || (box.kind === "router" && weights) ? "" : box.kind, weights].filter(Boolean).join(" · "), shape: "", count };
  }
  const names = { route: `by ${(box.detail || "").split(" by ").pop().split(".").pop()}` };
  return { title, name: called || names[box.kind] || (box.kind === "op" ? "" : box.kind), shape: isWithout(state, "shapes") ? "" : box.short || "", count: "" };
}

// What a box is called, but for what it does, where that is the last part of its name.
function stripOp(does, label) {
  const op = withoutSettings(does);
  if (label === op) return "";
  return label.endsWith(`.${op}`) ? label.slice(0, -op.length - 1) : label;
}

function sizeOf(texts) {
  const first = texts.title.length * CHARACTER + (texts.count ? (texts.count.length + 1) * CHARACTER + 8 : 0);
  const second = (texts.name.length + texts.shape.length + (texts.name && texts.shape ? 2 : 0)) * SMALL;
  return { width: Math.ceil(Math.max(first, second, 48) + 30), height: texts.name || texts.shape ? 44 : 30 };
}

const OPTIONS = {
  "elk.algorithm": "layered",
  "elk.direction": "DOWN",
  "elk.hierarchyHandling": "INCLUDE_CHILDREN",
  "elk.edgeRouting": "ORTHOGONAL",
  "elk.json.shapeCoords": "ROOT",
  "elk.json.edgeCoords": "ROOT",
  "elk.padding": "[top=16,left=16,bottom=16,right=16]",
  "elk.spacing.nodeNode": "22",
  "elk.spacing.edgeNode": "14",
  "elk.spacing.edgeEdge": "10",
  "elk.layered.spacing.nodeNodeBetweenLayers": "30",
  "elk.layered.spacing.edgeNodeBetweenLayers": "14",
  "elk.layered.nodePlacement.strategy": "BRANDES_KOEPF",
  "elk.layered.nodePlacement.bk.fixedAlignment": "BALANCED",
  "elk.layered.mergeEdges": "false",
  "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES", // equals in the order of the source
};

const ROUTE_GAP = 40; // between the tokens, the router and the pool
// An unfolded route has a layout of its own, from left to right; so are its router and its pool.
const ROUTE = { ...OPTIONS, "elk.hierarchyHandling": "SEPARATE_CHILDREN", "elk.direction": "RIGHT", "elk.layered.spacing.nodeNodeBetweenLayers": String(ROUTE_GAP) };
const STACKED = 6, CHIP = [80, 44];
const MODULE = { most: 6, height: 20, gap: 5, top: 48 };

function isStacked(box) {
  return box.kind === "repeat" || box.count > 1;
}

// The modules of a folded pool in a route, one below the other: -1 is for those that are left out.
function modulesOf(box) {
  const count = box.count > 1 ? box.count : box.children.length, all = [...Array(count).keys()];
  return count > MODULE.most ? [...all.slice(0, MODULE.most - 2), -1, count - 1] : all;
}

// What a module of a pool does; settings of ops only where there is room.
function insideOf(box) {
  const model = box.count > 1 ? box.children : box.children[0].children || [];
  const steps = model.filter((child) => child.kind !== "input").map((child) => child.detail && child.kind === "op" ? child.detail : child.label);
  const whole = steps.join(" → ");
  return whole.length > SHORT ? shortened(steps.map(withoutSettings).join(" → "), SHORT) : whole;
}

function foldedSize(index, box, state) {
  const texts = textsOf(box, false, state), size = sizeOf(texts);
  if (isModules(index, box)) {
    const rows = modulesOf(box).length * (MODULE.height + MODULE.gap);
    return { width: Math.max(130, sizeOf({ ...texts, name: insideOf(box) }).width + foldRoom(box, state)), height: MODULE.top + rows + 6 };
  }
  const stacked = isStacked(box) ? STACKED : 0;
  return { width: size.width + foldRoom(box, state) + stacked, height: Math.max(size.height, 34) + (box.load ? 14 : 0) + stacked };
}

function isModules(index, box) {
  const outer = index.parents.get(box.id);
  return box.kind === "pool" && Boolean(outer) && isMixture(outer);
}

// Room for the sign that folds and unfolds; a picture has none.
function foldRoom(box, state) {
  return isGroup(box) && !state.plain ? 18 : 0;
}

function elkGraph(index, state) {
  const rooms = new Map(), down = { ...OPTIONS, "elk.direction": state.direction === "right" ? "RIGHT" : "DOWN" };
  for (const edge of visibleEdges(index, state)) {
    const straight = edge.kind === "carry" ? "0" : "10";
    if (!rooms.has(edge.room)) rooms.set(edge.room, []);
    rooms.get(edge.room).push({ id: edge.id, sources: [edge.source], targets: [edge.target], layoutOptions: { "elk.layered.priority.direction": straight } });
  }
  const chip = (id) => ({ id: id + TOKENS, width: CHIP[0], height: CHIP[1] });
  const node = (box) => {
    if (!isGroup(box) || !state.open.has(box.id)) return { id: box.id, ...foldedSize(index, box, state) };
    const size = sizeOf(textsOf(box, true, state));
    const children = visibleChildren(box, state).map(node), outer = index.parents.get(box.id);
    const isRoom = isMixture(box) || (outer && isMixture(outer));
    if (isRoom && box.kind !== "pool") children.unshift(chip(box.id));
    const needed = size.width + 26 + (box.kind === "block" ? 0 : box.kind.length * SMALL + 8);
    const inside = Math.max(...children.map((child) => child.width || child.least)) + 32;
    const side = 16 + Math.max(0, needed - inside) / 2;
    const padding = `[top=42,left=${side},bottom=${box.load && !isMixture(box) ? 26 : 16},right=${side}]`;
    const options = isMixture(box) ? ROUTE : isRoom ? down : {};
    return { id: box.id, children, least: Math.max(needed, inside), edges: rooms.get(box.id) || [], layoutOptions: { ...options, "elk.padding": padding } };
  };
  return { id: "", layoutOptions: down, children: kept(index.scene.boxes, state).map(node), edges: rooms.get("") || [] };
}

// Positions of boxes and edges, from what ELK gives: {width, height, boxes: {id: [x, y, w, h]}, edges: [{id, points}]}, and
// the places at which tokens enter a route, like boxes.
function readPositions(graph) {
  const boxes = {}, tokens = {}, edges = [];
  const visit = (node) => {
    for (const edge of node.edges || []) edges.push(edge);
    if (node.id) (node.id.endsWith(TOKENS) ? tokens : boxes)[node.id] = [node.x, node.y, node.width, node.height];
    (node.children || []).forEach(visit);
  };
  visit(graph);
  const pointsOf = (edge) => (edge.sections || []).flatMap((part) => [part.startPoint, ...(part.bendPoints || []), part.endPoint]).map((p) => [p.x, p.y]);
  return { width: graph.width, height: graph.height, boxes, tokens, edges: edges.map((edge) => ({ id: edge.id, points: pointsOf(edge) })) };
}
