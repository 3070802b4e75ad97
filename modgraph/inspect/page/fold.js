// Content that is folded at first, under a summary.

DRAW.fold = ({ summary, content }) => element("details", {}, element("summary", {}, summary), element("div", { class: "row" },
  content.map((each) => element("figure", {}, each.title ? element("figcaption", {}, each.title) : null, DRAW[each.kind](each)))));
