// The decisions of a route for one example, from what the model records of it.

import { rows } from "./arrays.js";

// `gates` and `counts` of each token's modules, `choices` of modules by gate, the share `use` of each module in all.
export function decisionsOf(route, outputs) {
  const gates = rows(outputs[route.gates]), counts = countsOf(route, outputs) ?? gates;
  const selects = Boolean(route.choice || route.slots);
  const use = new Array(route.modules).fill(0);
  for (const row of counts) row.forEach((value, module) => (use[module] += value));
  const whole = use.reduce((sum, value) => sum + value, 0) || 1;
  const byGate = (row, token) => [...row.keys()].filter((module) => row[module] > 0).sort((a, b) => gates[token][b] - gates[token][a] || a - b);
  return { gates, selects, choices: selects ? counts.map(byGate) : [], use: use.map((value) => value / whole) };
}

// How many slots each module has of each token, or whether it was a choice; null where a router selects nothing.
function countsOf(route, outputs) {
  if (!route.slots) return route.choice ? rows(outputs[route.choice]) : null;
  const found = rows(outputs[route.slots]), slots = outputs[route.slots].shape.at(-2);
  return Array.from({ length: found.length / slots }, (_, token) =>
    found.slice(token * slots, (token + 1) * slots).reduce((sum, row) => sum.map((value, module) => value + row[module])));
}
