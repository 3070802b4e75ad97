// Borders that one drags, or moves by arrow keys: the width before or behind them is kept in the browser.

const STEP = 24, LEAST = 160;

// `name` is the variable of the style that has the width; `grows` is 1 where it grows to the right, -1 to the left.
function splitter(name, label, grows) {
  const bar = element("div", { class: `splitter splitter-${name}`, role: "separator", "aria-orientation": "vertical", "aria-label": label, tabindex: "0" });
  const root = document.documentElement.style, first = () => parseFloat(getComputedStyle(document.documentElement).getPropertyValue(`--${name}`));
  let width = first();
  const show = (next) => {
    width = Math.round(Math.min(Math.max(next, LEAST), innerWidth * 0.6));
    root.setProperty(`--${name}`, `${width}px`);
    bar.setAttribute("aria-valuenow", width);
    dispatchEvent(new Event("resize"));
  };
  const keep = () => remember(name, width);
  bar.addEventListener("pointerdown", (event) => {
    const [start, before] = [event.clientX, width];
    bar.setPointerCapture(event.pointerId);
    bar.onpointermove = (moved) => show(before + grows * (moved.clientX - start));
    bar.onpointerup = bar.onpointercancel = () => {
      bar.onpointermove = bar.onpointerup = bar.onpointercancel = null;
      keep();
    };
    event.preventDefault();
  });
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
    if (step) show(width + grows * step);
    else return;
    keep();
    event.preventDefault();
    event.stopPropagation();
  });
  bar.setAttribute("aria-valuenow", width);
  const kept = Number(recall(name));
  if (kept) show(kept);
  return bar;
}

// A page in a frame, as in a notebook, may keep nothing.
function remember(name, value) {
  try {
    localStorage.setItem(`modgraph-${name}`, String(value));
  } catch {
    return;
  }
}

function recall(name) {
  try {
    return localStorage.getItem(`modgraph-${name}`);
  } catch {
    return null;
  }
}
