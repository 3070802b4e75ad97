// A border between two panes that a pointer or the arrow keys move: the share of the first, in percent, is a custom property.

export function splitter(border, { name, across = true, least = 15, most = 85, step = 3 }) {
  const parent = border.parentElement;
  const set = (share) => {
    const rounded = Math.round(Math.min(most, Math.max(least, share)) * 10) / 10;
    parent.style.setProperty(name, `${rounded}%`);
    border.setAttribute("aria-valuenow", String(rounded));
  };
  const share = () => Number(border.getAttribute("aria-valuenow"));
  for (const [key, value] of Object.entries({ role: "separator", tabindex: "0", "aria-orientation": across ? "vertical" : "horizontal", "aria-valuemin": least, "aria-valuemax": most }))
    border.setAttribute(key, value);
  border.addEventListener("pointerdown", (event) => border.setPointerCapture(event.pointerId));
  border.addEventListener("pointermove", (event) => {
    if (!border.hasPointerCapture(event.pointerId)) return;
    const edge = parent.getBoundingClientRect();
    set(across ? (100 * (event.clientX - edge.left)) / edge.width : (100 * (event.clientY - edge.top)) / edge.height);
  });
  border.addEventListener("keydown", (event) => {
    const [less, more] = across ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
    const next = { [less]: share() - step, [more]: share() + step, Home: least, End: most }[event.key];
    if (next === undefined) return;
    set(next);
    event.preventDefault();
  });
  return set;
}
