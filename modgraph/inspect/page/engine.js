// The renderer in V8, run from Python: what it needs of a browser, and `render`, whose result is `rendered`.

var window = globalThis, pending = [];
var console = {log() {}, warn() {}, error() {}, info() {}};
function setTimeout(act) { return pending.push(act); }
function clearTimeout() {}

// What is unfolded, arranged and rendered: `rendered` is there when the queue of timers has run dry. `settings` has the `room`
// [width, height], or a number of boxes, or null for all; `changes` to unfold these only; `isDeep` to unfold what is not
// folded below a depth; `without`, `direction`, `plain`.
var rendered = null, fault = null;
function render(data, settings) {
  rendered = fault = null;
  const index = indexed(data.scene), elk = new ELK(), { direction, plain } = settings;
  annotate(index, data);
  for (const id of Object.keys(data.marks || {})) if (!index.boxes.has(id)) delete data.marks[id];
  const layout = async (state) => readPositions(await elk.layout(elkGraph(index, Object.assign(state, { direction, plain }))));
  const choose = async () => {
    const { room, without, changes } = settings, isWanted = settings.routes ? leadsToLoad : undefined;
    const lay = async (state) => ({ state, positions: await layout(state) });
    if (settings.isDeep) return lay(unfoldedToDepth(data.scene, without));
    if (changes.length) return lay(stateOfChanges(index, changes, without));
    if (room === null) return lay(unfoldedAll(data.scene, without));
    if (!Array.isArray(room)) return lay(firstState(data.scene, room, without, isWanted));
    return firstView(index, layout, room, without, isWanted);
  };
  choose().then(({ state, positions }) => {
    const { open, all, without } = state;
    rendered = JSON.stringify({
      state: { open: [...open], all: [...all], without: [...without], direction }, positions, svg: svgText(drawing(index, state, positions)),
    });
  }).catch((error) => { fault = String(error && error.stack || error); });
}

// Run what waits, and say whether the drawing is still to come: promises go on between two calls.
function proceed() {
  while (pending.length) pending.shift()();
  return rendered === null && fault === null;
}
