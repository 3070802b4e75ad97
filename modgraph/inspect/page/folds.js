// Which boxes are unfolded at first, or when all are asked for.

const READABLE = 9 / 11; // the least scale at first: the smallest text then has nine pixels
const MOST_LAYOUTS = 6, MOST_BOXES = 60;

function foldedAll(without = LEFT_OUT) {
  return { open: new Set(), all: new Set(), without: new Set(without) };
}

// How a router decides, and what is in a built-in block, is for those who ask.
function isShownFirst(box) {
  return isGroup(box) && box.kind !== "router" && !box.built_in && !box.folded && (box.kind !== "route" || isMixture(box));
}

// All that is shown first, for a scene that is folded below some depth.
function unfoldedToDepth(scene, without) {
  const state = foldedAll(without);
  const visit = (box) => {
    if (!isShownFirst(box)) return;
    state.open.add(box.id);
    drawnChildren(box, state).forEach(visit);
  };
  kept(scene.boxes, state).forEach(visit);
  return state;
}

// The first look: groups are unfolded from the outside in, as long as the drawing fits into `room` [width, height] at a
// scale that one can read; losses are left out where otherwise nothing fits. `layout` resolves to the positions of a state.
async function firstLook(index, layout, room, without, isWanted = () => true) {
  const look = await unfoldInto(index, layout, room, [...without], isWanted);
  if (look.state.open.size > 1 && look.laid.width <= room[0]) return look;
  const bare = await unfoldInto(index, layout, room, [...without, "losses"], isWanted);
  const isBetter = bare.state.open.size > look.state.open.size || (look.laid.width > room[0] && bare.laid.width < look.laid.width);
  return isBetter ? bare : look;
}

// Unfold level by level. Of a level that does not fit, the failed layout tells the size of each unfolded box, so that the
// next has those that fit together.
async function unfoldInto(index, layout, room, without, isWanted) {
  let state = foldedAll(without), laid = await layout(state), layouts = 1;
  if (laid.width > room[0] && !without.includes("losses")) return { state, laid };
  const limit = [Math.max(room[0], laid.width), Math.max(room[1], laid.height)];
  const unfold = async (level) => {
    for (let boxes = fewEnough(level, state, laid); boxes.length && layouts < MOST_LAYOUTS; layouts++) {
      const next = unfolded(state, boxes), placed = await layout(next);
      if (placed.width <= limit[0] && placed.height <= limit[1]) {
        [state, laid] = [next, placed];
        return boxes;
      }
      const fitting = thoseThatFit(index, boxes, laid, placed, limit, state.direction === "right" ? 0 : 1);
      boxes = fitting.length < boxes.length ? fitting : boxes.slice(0, -1);
    }
    return [];
  };
  const candidates = (boxes) => byInterest(boxes.filter((box) => isShownFirst(box) && isWanted(box) && !isModules(index, box)));
  for (let level = candidates(kept(index.scene.boxes, state)); level.length; ) {
    const opened = await unfold(level);
    level = candidates(opened.flatMap((box) => drawnChildren(box, state)));
  }
  return { state, laid };
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
function fewEnough(boxes, state, laid) {
  let seen = Object.keys(laid.boxes).length;
  return boxes.filter((box) => {
    const more = drawnChildren(box, unfolded(state, [box])).length, fits = seen + more <= MOST_BOXES;
    if (fits) seen += more;
    return fits;
  });
}

// Of boxes that are too large together, the first that fit by their sizes in the layout in which all are unfolded, `placed`:
// one grows the drawing along its `axis` by as much as it gets longer than what stands in its row.
function thoseThatFit(index, boxes, laid, placed, limit, axis) {
  let length = axis ? laid.height : laid.width;
  const inRow = (one, other) => one[axis] < other[axis] + other[axis + 2] && other[axis] < one[axis] + one[axis + 2];
  const siblings = (box) => index.order.filter((each) => index.parents.get(each.id) === index.parents.get(box.id) && laid.boxes[each.id]);
  return boxes.filter((box) => {
    const now = placed.boxes[box.id], row = siblings(box).map((each) => laid.boxes[each.id]).filter((place) => inRow(place, laid.boxes[box.id]));
    const growth = Math.max(0, now[axis + 2] - Math.max(...row.map((place) => place[axis + 2])));
    const fits = length + growth <= limit[axis] && now[3 - axis] <= limit[1 - axis];
    if (fits) length += growth;
    return fits;
  });
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
      const children = drawnChildren(box, state);
      if (box.kind === "pool" && children.length < 3 && children.length + seen > budget + 6) continue;
      if (!isShownFirst(box) || seen + children.length > budget || !isWanted(box)) continue;
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

function unfoldedAll(scene, without) {
  const state = foldedAll(without);
  const visit = (box) => {
    if (!isGroup(box)) return;
    state.open.add(box.id);
    drawnChildren(box, state).forEach(visit);
  };
  kept(scene.boxes, state).forEach(visit);
  return state;
}
