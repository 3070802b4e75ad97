// A colour for each module of a pool.

const NAMED = ["#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf"];

export function colourOf(module, modules) {
  return modules <= NAMED.length ? NAMED[module] : `hsl(${(module * 137.5) % 360} 65% ${45 + 12 * (module % 3)}%)`;
}
