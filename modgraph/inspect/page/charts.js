// Sections: tables, bars, pictures and charts.

function formatNumber(value) {
  if (typeof value !== "number") return String(value ?? "");
  return Number.isInteger(value) ? value.toLocaleString("en") : Math.abs(value) >= 0.001 && Math.abs(value) < 1e5 ? String(+value.toPrecision(4)) : value.toExponential(2);
}

const DRAW = {
  text: (content) => element("p", {}, content.text),
  table: (content) => {
    const numeric = (cell) => (typeof cell === "number" ? "numeric" : undefined);
    const row = (cells, tag) => element("tr", {}, cells.map((cell) => element(tag, { class: numeric(cell) }, formatNumber(cell))));
    return element("table", {}, content.header.length ? element("thead", {}, row(content.header, "th")) : null, element("tbody", {}, content.rows.map((cells) => row(cells, "td"))));
  },
  bars: (content) => {
    const most = Math.max(...content.values, 1e-12);
    return element("table", {}, content.labels.map((label, at) => {
      const bar = element("i");
      bar.style.width = `${(100 * Math.max(0, content.values[at])) / most}%`;
      return element("tr", {}, element("td", {}, label), element("td", {}, element("div", { class: "meter" }, bar)), element("td", { class: "numeric mono" }, formatNumber(content.values[at])));
    }));
  },
  picture: (content) => element("img", { src: content.data, alt: content.title }),
};

// A chart no wider than the place of the page, which must be displayed.
function fitted(spec, place) {
  if (!spec.autosize) return spec;
  const width = Math.min(spec.width, place.closest(".row").clientWidth);
  return { ...spec, width, params: spec.params.map((each) => (each.name === "total" ? { ...each, value: width } : each)) };
}

// Where a section speaks of a node, its heading leads there; above are links to all sections. Charts are rendered one after
// the other as soon as the place is displayed.
function drawCharts(place, sections, toNode, config) {
  const waiting = [], drawAll = async (charts) => { for (const draw of charts.splice(0)) await draw(); };
  const chart = (content, charts) => {
    const frame = element("div", { class: "chart", role: "img", "aria-label": content.title });
    charts.push(() => drawChart(frame, { data: { values: [content] }, ...fitted(content.spec, frame) }, config));
    return frame;
  };
  // Content that is folded at first, under a summary; its charts are rendered when it unfolds.
  const fold = ({ summary, content }) => {
    const inner = [], details = element("details", {}, element("summary", {}, summary), element("div", { class: "row" }, content.map((each) => figure(each, inner))));
    details.addEventListener("toggle", () => drawAll(inner));
    return details;
  };
  const body = (content, charts) => (content.kind === "fold" ? fold(content) : content.spec ? chart(content, charts) : DRAW[content.kind](content));
  const figure = (content, charts = waiting) => element("figure", {}, content.title ? element("figcaption", {}, content.title) : null, body(content, charts));
  const link = (text, onclick, title) => element("button", { class: "link", type: "button", title, onclick }, text);
  const heading = ({ title, nodes }) => nodes.length ? link(title, () => toNode(nodes[0]), "display it in the graph") : title;
  const parts = sections.map((section) => element("section", {}, element("h2", {}, heading(section)), element("div", { class: "row" }, section.content.map((content) =>
    content.kind === "text" ? DRAW.text(content) : figure(content)))));
  if (parts.length > 2) place.append(element("nav", { "aria-label": "sections" }, parts.map((each, at) => link(sections[at].title, () => each.scrollIntoView()))));
  place.append(...parts);
  new IntersectionObserver(async (entries, observer) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    await drawAll(waiting);
  }).observe(place);
}
