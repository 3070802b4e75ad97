// A scene, indexed, and what of it is visible under a fold state.
//
// A fold state is {open, all, without}: the ids of boxes that are unfolded, of repeats that show all of their
// repetitions rather than the first, and what is left out: losses, lengths, shapes, parameters.

const LEFT_OUT = new Set(["lengths"]);

function isWithout(state, what) {
  return (state.without || LEFT_OUT).has(what);
}

function indexed(scene) {
  const boxes = new Map(), parents = new Map(), order = [];
  const visit = (box, parent) => {
    boxes.set(box.id, box);
    parents.set(box.id, parent);
    order.push(box);
    for (const child of box.children || []) visit(child, box);
  };
  for (const box of scene.boxes) visit(box, null);
  const into = new Map(), outOf = new Map();
  for (const edge of scene.edges) {
    if (!into.has(edge.target)) into.set(edge.target, []);
    if (!outOf.has(edge.source)) outOf.set(edge.source, []);
    into.get(edge.target).push(edge);
    outOf.get(edge.source).push(edge);
  }
  return { scene, boxes, parents, order, into, outOf };
}

function isGroup(box) {
  return Boolean(box.children && box.children.length);
}

function ancestors(index, id) {
  const found = [];
  for (let box = index.parents.get(id); box; box = index.parents.get(box.id)) found.push(box);
  return found;
}

// The visible boxes of some.
function kept(boxes, state) {
  return boxes.filter((box) => !box.serves || !isWithout(state, box.serves));
}

// The visible children of an unfolded box: of a repeat those of its first period, unless all are asked for.
function visibleChildren(box, state) {
  return kept(isOneFrame(box, state) ? box.children[0].children : firstPeriod(box, state), state);
}

// Whether a route has its router and its pool inside, to be rendered side by side.
function isMixture(box) {
  return box.kind === "route" && (box.children || []).some((child) => child.kind === "pool");
}

function firstPeriod(box, state) {
  const children = box.children || [];
  return box.kind === "repeat" && !state.all.has(box.id) ? children.slice(0, box.period) : children;
}

// Whether the frame of a repeat is that of the one box which it repeats, too.
function isOneFrame(box, state) {
  return box.kind === "repeat" && box.period === 1 && !state.all.has(box.id) && isGroup(box.children[0]);
}

// The box in whose frame a box is rendered: itself, or a repeat.
function framed(index, state, id) {
  const outer = index.parents.get(id);
  return outer && isOneFrame(outer, state) && outer.children[0].id === id ? outer.id : id;
}

// Show all repetitions of a repeat, unfolded as the first are.
function unfoldLike(repeat, state) {
  state.all.add(repeat.id);
  if (repeat.period === 1) state.open.add(repeat.children[0].id);
  const same = (box, model) => {
    for (const set of [state.open, state.all]) if (set.has(model.id)) set.add(box.id);
    (box.children || []).forEach((child, at) => same(child, model.children[at]));
  };
  repeat.children.forEach((child, at) => same(child, repeat.children[at % repeat.period]));
}

// Unfold what is around a box, so that it is visible.
function reveal(index, state, id) {
  let inside = index.boxes.get(id);
  const show = (box) => box.serves && isWithout(state, box.serves) && state.without.delete(box.serves);
  show(inside);
  for (const outer of ancestors(index, id)) {
    show(outer);
    state.open.add(outer.id);
    if (outer.kind === "repeat" && inside.alike) state.all.add(outer.id);
    inside = outer;
  }
}

// For every box the visible one in its place: itself, the folded box that it is in, or its like in a repeat.
function findVisible(scene, state) {
  const visibleOf = new Map(), copies = new Set();
  const hide = (box, by) => {
    visibleOf.set(box.id, by);
    for (const child of box.children || []) hide(child, by);
  };
  const same = (box, model) => {
    visibleOf.set(box.id, visibleOf.get(model.id));
    copies.add(box.id);
    (box.children || []).forEach((child, at) => same(child, model.children[at]));
  };
  const visit = (box) => {
    visibleOf.set(box.id, box.id);
    if (!isGroup(box)) return;
    if (!state.open.has(box.id)) {
      for (const child of box.children) hide(child, box.id);
      return;
    }
    const firsts = firstPeriod(box, state);
    if (isOneFrame(box, state)) visibleOf.set(firsts[0].id, box.id);
    const inner = isOneFrame(box, state) ? firsts[0].children : firsts, visible = new Set(visibleChildren(box, state));
    for (const child of inner) visible.has(child) ? visit(child) : hide(child, null);
    box.children.slice(firsts.length).forEach((child, at) => same(child, firsts[at % firsts.length]));
  };
  const visible = new Set(kept(scene.boxes, state));
  for (const box of scene.boxes) visible.has(box) ? visit(box) : hide(box, null);
  return { visibleOf, copies };
}

// The rooms that a box is in, outer ones first, each with a layout of its own: in an unfolded route, the route, and in it
// the router or the pool.
function roomsOf(index, state, id) {
  const path = ancestors(index, id).reverse().filter((box) => state.open.has(box.id));
  return path.filter((box) => isMixture(box) || isMixture(index.parents.get(box.id) || box)).map((box) => box.id);
}

const TOKENS = "#tokens"; // ends the id of the place at which values enter an open route or its router

// An edge as its parts, each within one room: to the route around its target, and from what enters there.
function partsOf(index, state, source, target) {
  const from = roomsOf(index, state, source), to = roomsOf(index, state, target);
  let depth = 0;
  while (depth < from.length && from[depth] === to[depth]) depth++;
  const room = from[depth - 1] || "", inner = to[to.length - 1];
  if (room && isMixture(index.boxes.get(room))) return []; // the drawing of a route says it
  const parts = [{ room, source: from[depth] || source, target: to[depth] || target }];
  if (to.length > depth && index.boxes.get(inner).kind === "router") parts.push({ room: inner, source: inner + TOKENS, target });
  return parts;
}

// What leads in an open route from its tokens to the router, and by gates to the modules.
function edgesOfRoute(route) {
  const [router, pool] = route.children, edge = (kind, source, target) => ({ id: `${route.id}#${kind}`, room: route.id, source, target, kind, edges: [] });
  return [edge("data", route.id + TOKENS, router.id), edge("gates", router.id, pool.id)];
}

// The edges between visible boxes: those that fall together are one, which knows them all.
function visibleEdges(index, state) {
  const { visibleOf, copies } = findVisible(index.scene, state);
  const inside = new Map();
  const isInside = (outer, inner) => ancestors(index, inner).some((box) => box.id === outer);
  const found = new Map();
  for (const edge of index.scene.edges) {
    const source = visibleOf.get(edge.source), target = visibleOf.get(edge.target);
    if (source === target || source === null || target === null || (edge.kind === "length" && isWithout(state, "lengths"))) continue;
    if (copies.has(edge.target) && loops(index, edge)) continue;
    const pair = JSON.stringify([source, target]);
    if (!inside.has(pair)) inside.set(pair, isInside(source, target) || isInside(target, source) ? [] : partsOf(index, state, source, target));
    for (const part of inside.get(pair)) {
      const key = JSON.stringify([part.source, part.target, edge.kind]);
      if (!found.has(key)) found.set(key, { id: key, ...part, kind: edge.kind, edges: [] });
      found.get(key).edges.push(edge);
    }
  }
  const visible = [...visibleOf].filter(([id, by]) => id === by && !copies.has(id)).map(([id]) => index.boxes.get(id));
  const routes = visible.filter((box) => isMixture(box) && state.open.has(box.id));
  return [...found.values(), ...routes.flatMap(edgesOfRoute)];
}

// Whether an edge leads from one repetition into the next: the repeat's frame says that already.
function loops(index, edge) {
  const outer = new Set(ancestors(index, edge.source).filter((box) => box.kind === "repeat").map((box) => box.id));
  const repeat = ancestors(index, edge.target).find((box) => box.kind === "repeat" && outer.has(box.id));
  if (!repeat) return false;
  const child = (id) => [index.boxes.get(id), ...ancestors(index, id)].find((box) => index.parents.get(box.id) === repeat);
  return child(edge.source) !== child(edge.target);
}

// Give boxes what is known of them besides the graph: marks of a comparison, loads of a trace. A pool's load is the mean
// of its routes'.
function annotate(index, data) {
  for (const [id, mark] of Object.entries(data.marks || {})) if (index.boxes.has(id)) index.boxes.get(id).mark = mark;
  for (const [id, shares] of Object.entries(data.loads || {})) if (index.boxes.has(id)) index.boxes.get(id).load = shares;
  for (const box of index.order.filter((each) => each.kind === "pool" && !each.load)) {
    const routes = (index.outOf.get(box.id) || []).map((edge) => index.boxes.get(edge.target).load).filter(Boolean);
    if (routes.length) box.load = routes[0].map((_, at) => routes.reduce((sum, shares) => sum + shares[at], 0) / routes.length);
  }
}
