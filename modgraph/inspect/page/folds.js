// Which boxes are unfolded at first, or when all are asked for.

const READABLE = 9 / 11; // the least scale at first: the smallest text then has nine pixels
const MOST_LAYOUTS = 6, MOST_BOXES = 60;
const GAP = 20; // between boxes of an unfolded one, as ELK leaves it

function foldedAll(without = LEFT_OUT) {
  return { open: new Set(), all: new Set(), without: new Set(without) };
}

// How a router decides, and what is in a built-in block, is for those who ask.
function isUnfoldedFirst(box) {
  return isGroup(box) && box.kind !== "router" && !box.built_in && !box.folded && (box.kind !== "route" || isMixture(box));
}

// All that is unfolded first, for a scene that is folded below some depth.
function unfoldedToDepth(scene, without) {
  const state = foldedAll(without);
  const visit = (box) => {
    if (!isUnfoldedFirst(box)) return;
    state.open.add(box.id);
    visibleChildren(box, state).forEach(visit);
  };
  kept(scene.boxes, state).forEach(visit);
  return state;
}

// The first view: groups are unfolded from the outside in, as long as the drawing fits into `room` [width, height] at a
// scale that one can read; losses are left out where otherwise nothing fits. `layout` resolves to the positions of a state.
async function firstView(index, layout, room, without, isWanted = () => true) {
  const view = await unfoldInto(index, layout, room, foldedAll(without), isWanted);
  if (view.state.open.size > 1 && view.positions.width <= room[0]) return view;
  const bare = await unfoldInto(index, layout, room, { ...view.state, without: new Set([...without, "losses"]) }, isWanted);
  const isBetter = bare.state.open.size > view.state.open.size || (view.positions.width > room[0] && bare.positions.width < view.positions.width);
  return isBetter ? bare : view;
}

// Unfold level by level, from a state on. Boxes that are too large whatever their place are left folded; of those that do
// not fit together, the failed layout has the size of each, so that the next has some that do.
async function unfoldInto(index, layout, room, start, isWanted) {
  let state = start, positions = await layout(state), layouts = 1;
  if (positions.width > room[0] && !isWithout(state, "losses")) return { state, positions };
  const limit = [Math.max(room[0], positions.width), Math.max(room[1], positions.height)], axis = state.direction === "right" ? 0 : 1;
  const unfold = async (level) => {
    const likely = thoseThatFit(index, fewEnough(level, state, positions), positions, (box) => leastSize(index, box, state, axis), limit, axis);
    for (let boxes = likely; boxes.length && layouts < MOST_LAYOUTS; layouts++) {
      const next = unfolded(state, boxes), placed = await layout(next);
      if (placed.width <= limit[0] && placed.height <= limit[1]) {
        [state, positions] = [next, placed];
        return boxes;
      }
      const fitting = thoseThatFit(index, boxes, positions, (box) => placed.boxes[box.id].slice(2), limit, axis);
      boxes = fitting.length < boxes.length ? fitting : boxes.slice(0, -1);
    }
    return [];
  };
  const candidates = (boxes) => byInterest(boxes.filter((box) => isUnfoldedFirst(box) && isWanted(box) && !isModules(index, box)));
  const visible = index.order.filter((box) => positions.boxes[box.id] && !state.open.has(box.id));
  for (let level = candidates(visible); level.length; ) {
    const opened = await unfold(level);
    level = candidates(opened.flatMap((box) => visibleChildren(box, state)));
  }
  return { state, positions };
}

function unfolded(state, boxes) {
  const next = { ...state, open: new Set(state.open), all: new Set(state.all) };
  for (const box of boxes) {
    next.open.add(box.id);
    if (box.kind === "repeat" && holdsLoad(box)) next.all.add(box.id);
  }
  return next;
}

// Of boxes, the first whose children are not too many together.
function fewEnough(boxes, state, positions) {
  let seen = Object.keys(positions.boxes).length;
  return boxes.filter((box) => {
    const more = visibleChildren(box, unfolded(state, [box])).length, fits = seen + more <= MOST_BOXES;
    if (fits) seen += more;
    return fits;
  });
}

// Of boxes that are too large together, the first that fit by their sizes [width, height] when they are unfolded: one grows
// the drawing along its `axis` by as much as it gets longer than its row.
function thoseThatFit(index, boxes, positions, sizeOfUnfolded, limit, axis) {
  let length = axis ? positions.height : positions.width;
  const inRow = (one, other) => one[axis] < other[axis] + other[axis + 2] && other[axis] < one[axis] + one[axis + 2];
  const siblings = (box) => index.order.filter((each) => index.parents.get(each.id) === index.parents.get(box.id) && positions.boxes[each.id]);
  return boxes.filter((box) => {
    const now = sizeOfUnfolded(box), row = siblings(box).map((each) => positions.boxes[each.id]).filter((place) => inRow(place, positions.boxes[box.id]));
    const growth = Math.max(0, now[axis] - Math.max(...row.map((place) => place[axis + 2])));
    const fits = length + growth <= limit[axis] && now[1 - axis] <= limit[1 - axis];
    if (fits) length += growth;
    return fits;
  });
}

// What an unfolded box needs at least [width, height]: along the axis its longest path of boxes, across it the widest of
// them. The parts of a route are in a row.
function leastSize(index, box, state, axis) {
  const children = visibleChildren(box, unfolded(state, [box])), sizes = new Map(children.map((child) => [child.id, inner(foldedSize(index, child, state))]));
  const inRow = isMixture(box), along = inRow ? 0 : axis, gap = inRow ? ROUTE_GAP : GAP;
  const across = Math.max(...[...sizes.values()].map((size) => size[1 - along]));
  const length = inRow ? [...sizes.values()].reduce((sum, size) => sum + size[0] + gap, CHIP[0]) : longestPath(index, sizes, along, gap);
  const size = along ? [across, length] : [length, across];
  return [size[0] + 32, size[1] + 58];
}

const inner = ({ width, height }) => [width, height];

// The length of the longest path through some boxes, by the edges between what is in them.
function longestPath(index, sizes, axis, gap) {
  const holder = (id) => [id, ...ancestors(index, id).map((box) => box.id)].find((each) => sizes.has(each));
  const sources = new Map([...sizes.keys()].map((id) => [id, new Set()])), lengths = new Map();
  for (const edge of index.scene.edges) {
    const [source, target] = [holder(edge.source), holder(edge.target)];
    if (source && target && source !== target && edge.kind === "data") sources.get(target).add(source);
  }
  const end = (id, path) => {
    if (!lengths.has(id)) lengths.set(id, sizes.get(id)[axis] + Math.max(0, ...[...sources.get(id)].filter((each) => !path.includes(each)).map((each) => gap + end(each, [...path, id]))));
    return lengths.get(id);
  };
  return Math.max(...[...sizes.keys()].map((id) => end(id, [])));
}

// What holds a change first, then rounds and routes before the rest, and what has most parameters.
function byInterest(boxes) {
  const holdsMark = (box) => (box.children || []).some((child) => child.mark || holdsMark(child));
  const rank = (box) => holdsMark(box) ? 0 : ["repeat", "route", "scan", "pool", "block"].indexOf(box.kind) + 1 || 9;
  const size = (box) => (box.counts ? box.counts.parameters : 0);
  return [...boxes].sort((a, b) => rank(a) - rank(b) || size(b) - size(a));
}

// Groups unfolded from the outside in, as long as no more than `budget` boxes are to be seen. Where only routes matter,
// what holds none stays folded.
function firstState(scene, budget, without, isWanted = () => true) {
  const state = foldedAll(without);
  let seen = kept(scene.boxes, state).length;
  let level = kept(scene.boxes, state).filter(isGroup);
  while (level.length) {
    const next = [];
    for (const box of level) {
      if (box.kind === "repeat" && holdsLoad(box)) state.all.add(box.id);
      const children = visibleChildren(box, state);
      if (box.kind === "pool" && children.length < 3 && children.length + seen > budget + 6) continue;
      if (!isUnfoldedFirst(box) || seen + children.length > budget || !isWanted(box)) continue;
      seen += children.length;
      state.open.add(box.id);
      next.push(...children.filter(isGroup));
    }
    level = next;
  }
  return state;
}

// Whether something in a box has a load: equal repetitions may differ in it.
function holdsLoad(box) {
  return Boolean(box.load) || (box.children || []).some(holdsLoad);
}

// Whether something inside a box has a load.
function leadsToLoad(box) {
  return (box.children || []).some(holdsLoad);
}

function unfoldedAll(scene, without) {
  const state = foldedAll(without);
  const visit = (box) => {
    if (!isGroup(box)) return;
    state.open.add(box.id);
    visibleChildren(box, state).forEach(visit);
  };
  kept(scene.boxes, state).forEach(visit);
  return state;
}
