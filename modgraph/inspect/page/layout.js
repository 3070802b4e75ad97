// What is visible, as a graph for ELK; text is monospace, so that every machine measures it alike.

const CHARACTER = 7.23, SMALL = 6.03, LONGEST = 34;

function shortened(text, most) {
  return text.length > most ? text.slice(0, most - 1) + "…" : text;
}

function amount(count) {
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e3]])
    if (count >= size) return (count / size).toPrecision(3).replace(/\.?0+$/, "") + unit;
  return String(count);
}

// The lines of text in a box: what it does, what it is called, what comes out.
function textsOf(box, isOpen) {
  const does = ["op", "tokenizer", "router", "output"].includes(box.kind) && box.detail;
  const title = shortened(does || box.label, LONGEST);
  const called = does ? shortened(nameBeside(does, box.label), LONGEST) : "";
  if (isGroup(box)) {
    const count = box.count > 1 ? `× ${box.count}` : "";
    const weights = box.counts && box.counts.parameters ? `${amount(box.counts.parameters)} parameters` : "";
    return { title, name: isOpen ? "" : [box.kind === "block" ? "" : box.kind, weights].filter(Boolean).join(" · "), shape: "", count };
  }
  const names = { route: `by ${(box.detail || "").split(" by ").pop().split(".").pop()}` };
  return { title, name: called || names[box.kind] || (box.kind === "op" ? "" : box.kind), shape: box.short || "", count: "" };
}

// What a box is called, but for what it does, where that is the last part of its name.
function nameBeside(does, label) {
  const op = does.split("(")[0];
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
};

function elkGraph(index, state) {
  const node = (box) => {
    const isOpen = isGroup(box) && state.open.has(box.id);
    const texts = textsOf(box, isOpen), size = sizeOf(texts);
    if (!isOpen) {
      const stacked = box.kind === "repeat" || box.count > 1 ? 6 : 0;
      return { id: box.id, width: size.width + (isGroup(box) ? 18 : 0) + stacked, height: Math.max(size.height, 34) + (box.load ? 14 : 0) + stacked };
    }
    const children = drawnChildren(box, state).map(node);
    const needed = size.width + 26 + (box.kind === "block" ? 0 : box.kind.length * SMALL + 8);
    const inside = Math.max(...children.map((child) => child.width || child.least)) + 32;
    const beside = 16 + Math.max(0, needed - inside) / 2;
    const padding = `[top=42,left=${beside},bottom=${box.load ? 26 : 16},right=${beside}]`;
    return { id: box.id, children, least: Math.max(needed, inside), layoutOptions: { "elk.padding": padding } };
  };
  const edges = visibleEdges(index, state).map((edge) => {
    const back = edge.kind === "carry";
    return { id: edge.id, sources: [edge.source], targets: [edge.target], edge,
             layoutOptions: back ? { "elk.layered.priority.direction": "0" } : { "elk.layered.priority.direction": "10" } };
  });
  return { id: "", layoutOptions: OPTIONS, children: index.scene.boxes.map(node), edges };
}

// Positions of boxes and edges, from what ELK gives: {width, height, boxes: {id: [x, y, w, h]}, edges: [{id, points}]}.
function positions(laid) {
  const boxes = {};
  const visit = (node) => {
    boxes[node.id] = [node.x, node.y, node.width, node.height];
    (node.children || []).forEach(visit);
  };
  laid.children.forEach(visit);
  const edges = laid.edges.map((edge) => ({
    id: edge.id,
    points: (edge.sections || []).flatMap((part) => [part.startPoint, ...(part.bendPoints || []), part.endPoint]).map((p) => [p.x, p.y]),
  }));
  return { width: laid.width, height: laid.height, boxes, edges };
}
