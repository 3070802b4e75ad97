// What is to be known of the selected box.

function panelOf(pane, box, choose) {
  const { index } = pane;
  const link = (id, text) => element("button", { class: "link", type: "button", onclick: () => choose(id) }, breakable(text || id));
  const facts = (title, pairs) => pairs.length ? [element("h3", {}, title), element("dl", {}, pairs.flatMap(([name, value]) => [element("dt", {}, breakable(name)), element("dd", { class: "mono" }, value)]))] : [];
  const rows = (title, list) => list && list.length ? [element("h3", {}, title), ...list.map((row) => element("div", { class: "row" },
    element("span", { class: "mono" }, row.name), element("span", { class: "mono muted" }, row.type), row.note ? element("p", { class: "muted" }, row.note) : null))] : [];
  const flows = (title, edges, end) => edges.length ? [element("h3", {}, title), ...edges.map((edge) => element("p", {},
    link(edge[end]), element("span", { class: "muted" }, ` ${[edge.slot, edge.type].filter(Boolean).join(": ")}`)))] : [];
  const outer = ancestors(index, box.id).reverse();
  return [
    element("p", { class: "muted" }, outer.flatMap((each) => [link(each.id, each.label), " › "])),
    element("h2", {}, box.label),
    element("p", {}, element("span", { class: "chip" }, box.kind), box.count > 1 ? `× ${box.count}` : ""),
    box.mark ? element("div", { class: "marks", "data-mark": box.mark.kind }, [box.mark.kind, ...(box.mark.lines || [])].join("\n")) : null,
    box.detail && box.detail !== box.label && box.detail !== (box.types || [])[0] ? element("p", { class: "mono" }, box.detail) : null,
    box.help ? element("p", { class: "muted" }, box.help) : null,
    ...(box.notes || []).map((note) => element("p", {}, note)),
    box.lines ? element("p", {}, element("button", { class: "link", type: "button", onclick: () => pane.toSource(box) }, `${box.lines.source}:${box.lines.first}`)) : null,
    ...pane.app.sectionsOf(box.id).map((section) => element("p", {}, element("button", { class: "link", type: "button", onclick: () => pane.app.toSection(section) }, `Data: ${section.title}`))),
    ...facts(box.types && box.types.length > 1 ? "Types" : "Type", (box.types || []).map((type, at) => [at ? String(at) : "value", type])),
    ...counts(box, pane), ...facts("Settings", Object.entries(box.settings || {})), ...loads(box),
    ...rows("Weights", box.weights), ...rows("Records", box.records),
    ...flows("Reads", index.into.get(box.id) || [], "source"), ...flows("Read by", index.outOf.get(box.id) || [], "target"),
  ].filter(Boolean);
}

const NAMES = { parameters: "parameters", trainable: "trainable", macs: "MACs", active_macs: "active MACs" };

function counts(box, pane) {
  const whole = pane.index.scene.counts;
  if (!box.counts) return [];
  const pairs = Object.entries(NAMES).map(([key, name]) => {
    const share = whole[key] ? ` (${((100 * box.counts[key]) / whole[key]).toFixed(1)} %)` : "";
    return [element("dt", {}, name), element("dd", { class: "mono" }, box.counts[key].toLocaleString("en") + share)];
  });
  const lengths = Object.entries(pane.index.scene.lengths).map(([axis, length]) => `${axis} = ${length}`).join(", ");
  return [element("h3", {}, "Cost per example"), element("dl", {}, pairs.flat()), lengths ? element("p", { class: "muted" }, `MACs at ${lengths}`) : null];
}

function loads(box) {
  if (!box.load) return [];
  return [element("h3", {}, "Load of modules"), element("table", {}, box.load.map((share, at) => {
    const bar = element("i");
    bar.style.width = `${Math.min(100, 100 * share)}%`;
    return element("tr", {}, element("td", {}, `module ${at}`), element("td", {}, element("div", { class: "meter" }, bar)), element("td", { class: "mono" }, `${(100 * share).toFixed(1)} %`));
  }))];
}

// The model as a whole, where nothing is selected.
function overviewOf(pane) {
  const { scene } = pane.index, pairs = Object.entries(NAMES).map(([key, name]) => [name, scene.counts[key].toLocaleString("en")]);
  const list = (entries) => element("dl", {}, entries.flatMap(([name, value]) => [element("dt", {}, breakable(name)), element("dd", { class: "mono" }, value)]));
  const lengths = Object.entries(scene.lengths);
  return [
    element("h2", { class: "first" }, scene.name), pane.data.label ? element("p", { class: "muted" }, pane.data.label) : null,
    element("h3", {}, "Cost per example"), list(pairs),
    lengths.length ? element("p", { class: "muted" }, `MACs at ${lengths.map(([axis, length]) => `${axis} = ${length}`).join(", ")}`) : null,
    ...(Object.keys(scene.parameters).length ? [element("h3", {}, "Parameters of the model"), list(Object.entries(scene.parameters))] : []),
    ...(pane.data.notes || []).map((note) => element("p", {}, note)),
  ].filter(Boolean);
}
