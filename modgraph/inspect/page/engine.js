// The renderer in V8, run from Python: what it needs of a browser, and `render`, whose result is `rendered`.

var window = globalThis, pending = [];
var console = {log() {}, warn() {}, error() {}, info() {}};
function setTimeout(act) { return pending.push(act); }
function clearTimeout() {}

// What is unfolded, laid out and drawn: `rendered` is there when the queue of timers has run dry.
var rendered = null, fault = null;
function render(data, budget, routes, changes) {
  rendered = fault = null;
  const index = indexed(data.scene);
  annotate(index, data);
  for (const id of Object.keys(data.marks || {})) if (!index.boxes.has(id)) delete data.marks[id];
  const isWanted = routes ? leadsToLoad : undefined;
  const state = changes.length ? stateOfChanges(index, changes, 2 * budget) : firstState(data.scene, budget, isWanted);
  new ELK().layout(elkGraph(index, state)).then((laid) => {
    const placed = positions(laid);
    rendered = JSON.stringify({
      state: {open: [...state.open], all: [...state.all]}, laid: placed, svg: svgText(drawing(index, state, placed)),
    });
  }).catch((error) => { fault = String(error && error.stack || error); });
  for (let turn = 0; pending.length; turn++) pending.shift()();
}
