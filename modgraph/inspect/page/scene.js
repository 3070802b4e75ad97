// A scene, indexed, and what of it is visible under a fold state.
//
// A fold state is {open, all}: the ids of boxes that are unfolded, and of repeats that show all of their repetitions
// rather than the first.

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

// The children that are drawn in an unfolded box: of a repeat those of its first period, unless all are asked for.
function drawnChildren(box, state) {
  if (isOneFrame(box, state)) return box.children[0].children;
  return firstPeriod(box, state);
}

function firstPeriod(box, state) {
  const children = box.children || [];
  return box.kind === "repeat" && !state.all.has(box.id) ? children.slice(0, box.period) : children;
}

// Whether the frame of a repeat is that of the one box which it repeats, too.
function isOneFrame(box, state) {
  return box.kind === "repeat" && box.period === 1 && !state.all.has(box.id) && isGroup(box.children[0]);
}

// The box in whose frame a box is drawn: itself, or a repeat.
function framed(index, state, id) {
  const outer = index.parents.get(id);
  return outer && isOneFrame(outer, state) && outer.children[0].id === id ? outer.id : id;
}

// What is unfolded at first: groups from the outside in, as long as no more than `budget` boxes are to be seen; how a
// router decides, and what is in a built-in block, is for those who ask. Where only routes matter, what holds none stays folded.
function firstState(scene, budget, isWanted = () => true) {
  const state = { open: new Set(), all: new Set() };
  let seen = scene.boxes.length;
  let level = scene.boxes.filter(isGroup);
  while (level.length) {
    const next = [];
    for (const box of level) {
      if (box.kind === "repeat" && holdsLoad(box)) state.all.add(box.id);
      const children = drawnChildren(box, state);
      if (box.kind === "pool" && children.length < 3 && children.length + seen > budget + 6) continue;
      if (box.kind === "route" || box.built_in || seen + children.length > budget || !isWanted(box)) continue;
      seen += children.length;
      state.open.add(box.id);
      next.push(...children.filter(isGroup));
    }
    level = next;
  }
  return state;
}

// Whether a trace tells of something in a box: repetitions that are alike are used unlike.
function holdsLoad(box) {
  return Boolean(box.load) || (box.children || []).some(holdsLoad);
}

// Whether something inside a box has a load.
function leadsToLoad(box) {
  return (box.children || []).some(holdsLoad);
}

function unfoldedAll(scene) {
  const state = { open: new Set(), all: new Set() };
  const visit = (box) => {
    if (!isGroup(box)) return;
    state.open.add(box.id);
    drawnChildren(box, state).forEach(visit);
  };
  scene.boxes.forEach(visit);
  return state;
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

// Unfold what a box stands in, so that it is visible.
function reveal(index, state, id) {
  let inside = index.boxes.get(id);
  for (const outer of ancestors(index, id)) {
    state.open.add(outer.id);
    if (outer.kind === "repeat" && inside.alike) state.all.add(outer.id);
    inside = outer;
  }
}

// For every box the visible one that stands for it: itself, the folded box that it is in, or its like in a repeat.
function standIns(scene, state) {
  const standsFor = new Map(), alike = new Map();
  const hidden = (box, visible) => {
    standsFor.set(box.id, visible);
    for (const child of box.children || []) hidden(child, visible);
  };
  const same = (box, model) => {
    standsFor.set(box.id, standsFor.get(model.id));
    alike.set(box.id, true);
    (box.children || []).forEach((child, at) => same(child, model.children[at]));
  };
  const visit = (box) => {
    standsFor.set(box.id, box.id);
    if (!isGroup(box)) return;
    if (!state.open.has(box.id)) {
      for (const child of box.children) hidden(child, box.id);
      return;
    }
    const firsts = firstPeriod(box, state);
    if (isOneFrame(box, state)) standsFor.set(firsts[0].id, box.id);
    drawnChildren(box, state).forEach(visit);
    box.children.slice(firsts.length).forEach((child, at) => same(child, firsts[at % firsts.length]));
  };
  scene.boxes.forEach(visit);
  return { standsFor, alike };
}

// The edges between visible boxes: those that fall together are one, which knows them all.
function visibleEdges(index, state) {
  const { standsFor, alike } = standIns(index.scene, state);
  const inside = new Map();
  const isInside = (outer, inner) => ancestors(index, inner).some((box) => box.id === outer);
  const found = new Map();
  for (const edge of index.scene.edges) {
    const source = standsFor.get(edge.source), target = standsFor.get(edge.target);
    if (source === target || (alike.has(edge.target) && loops(index, edge))) continue;
    const pair = JSON.stringify([source, target]);
    if (!inside.has(pair)) inside.set(pair, isInside(source, target) || isInside(target, source));
    if (inside.get(pair)) continue;
    const key = JSON.stringify([source, target, edge.kind]);
    if (!found.has(key)) found.set(key, { id: key, source, target, kind: edge.kind, edges: [] });
    found.get(key).edges.push(edge);
  }
  return [...found.values()];
}

// Whether an edge leads from one repetition into the next: the repeat's frame says that already.
function loops(index, edge) {
  const outer = new Set(ancestors(index, edge.source).filter((box) => box.kind === "repeat").map((box) => box.id));
  const repeat = ancestors(index, edge.target).find((box) => box.kind === "repeat" && outer.has(box.id));
  if (!repeat) return false;
  const child = (id) => [index.boxes.get(id), ...ancestors(index, id)].find((box) => index.parents.get(box.id) === repeat);
  return child(edge.source) !== child(edge.target);
}

// Give boxes what is known of them beside the graph: marks of a comparison, loads of a trace. A pool's load is the mean
// of its routes'.
function annotate(index, data) {
  for (const [id, mark] of Object.entries(data.marks || {})) if (index.boxes.has(id)) index.boxes.get(id).mark = mark;
  for (const [id, shares] of Object.entries(data.loads || {})) if (index.boxes.has(id)) index.boxes.get(id).load = shares;
  for (const box of index.order.filter((each) => each.kind === "pool" && !each.load)) {
    const routes = (index.outOf.get(box.id) || []).map((edge) => index.boxes.get(edge.target).load).filter(Boolean);
    if (routes.length) box.load = routes[0].map((_, at) => routes.reduce((sum, shares) => sum + shares[at], 0) / routes.length);
  }
}
