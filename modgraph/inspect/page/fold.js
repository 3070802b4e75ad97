// Content that is folded at first, under its title.

DRAW.fold = ({ title, content }) =>
  element("details", {}, element("summary", {}, title), ...content.map((each) => DRAW[each.kind](each)));
