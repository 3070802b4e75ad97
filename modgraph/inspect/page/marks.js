// What changed between two graphs: which boxes to unfold for it, and a sign on each marked box.

const SIGNS = { added: "+", removed: "−", changed: "~", moved: "→" };

const MOST_CHANGED = 120; // boxes in a drawing of changes, approximately

// Only what leads to changed boxes is unfolded; of very many changes, to the first.
function stateOfChanges(index, ids, without) {
  const state = foldedAll(without);
  let seen = kept(index.scene.boxes, state).length;
  for (const id of ids) {
    const inner = nearestBox(index, id);
    if (!inner || seen > MOST_CHANGED) continue;
    const before = new Set(state.open);
    reveal(index, state, inner);
    if (inner !== id && isGroup(index.boxes.get(inner))) state.open.add(inner);
    for (const open of state.open) if (!before.has(open)) seen += visibleChildren(index.boxes.get(open), state).length;
  }
  return state;
}

// The box of an id, or the one around the place where it would be.
function nearestBox(index, id) {
  for (let name = id; name; name = name.replace(/[./]?[^./]*$/, "")) if (index.boxes.has(name)) return name;
  return null;
}

// The sign of a mark, in the upper right corner of its box.
function signOf(box, [x, y, width]) {
  if (!box.mark) return [];
  const [cx, cy] = [x + width - 2, y + 2];
  return [["g", { class: "sign" }, ["circle", { cx, cy, r: 8 }], ["text", { x: cx, y: cy + 4, "text-anchor": "middle" }, SIGNS[box.mark.kind]]]];
}
