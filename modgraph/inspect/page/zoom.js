// Pan and zoom of one canvas: wheel, drag, pinch, keys. The view is {x, y, scale}; `follow` hears of each change.

class View {
  constructor(canvas, svg, follow) {
    Object.assign(this, { canvas, svg, follow, x: 0, y: 0, scale: 1, size: [1, 1], middle: 0, fitted: false, moved: false, pointers: new Map() });
    svg.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    svg.addEventListener("pointerdown", (event) => this.down(event));
    svg.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) svg.addEventListener(name, (event) => this.up(event));
  }
  show(quietly) {
    const drawing = this.svg.querySelector(".drawing");
    if (drawing) drawing.setAttribute("transform", `translate(${this.x} ${this.y}) scale(${this.scale})`);
    if (!quietly) this.follow(this);
  }
  // All of the drawing, or at first as much of it as can be read, from the top, where the input is; later where there is
  // no room yet.
  fit(readable = false) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width) return;
    this.fitted = true;
    const room = Math.min((width - 24) / this.size[0], (height - 24) / this.size[1]);
    const least = readable ? Math.max(READABLE, Math.min(0.9, (width - 24) / this.size[0])) : 0.03;
    this.scale = Math.min(1.1, Math.max(room, least));
    this.x = (width - this.size[0] * this.scale) / 2;
    this.y = Math.max(12, (height - this.size[1] * this.scale) / 2);
    if (this.size[0] * this.scale > width) this.x = Math.min(12, Math.max(width / 2 - this.middle * this.scale, width - 12 - this.size[0] * this.scale));
    this.show();
  }
  // Zoom in as far as needed to read, with a place of the drawing where it is.
  readable([x, y]) {
    if (this.scale < READABLE) this.zoom(READABLE / this.scale, this.x + x * this.scale, this.y + y * this.scale);
  }
  zoom(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const scale = Math.min(6, Math.max(0.03, this.scale * factor));
    this.x = x - ((x - this.x) * scale) / this.scale;
    this.y = y - ((y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.show();
  }
  pan(x, y) {
    this.x += x;
    this.y += y;
    this.show();
  }
  // Bring a place of the drawing into sight, in the middle where it is far away.
  bring([x, y, width, height]) {
    const [wide, high] = [this.canvas.clientWidth, this.canvas.clientHeight];
    if (!wide) return;
    if (this.scale < 0.45) this.zoom(0.8 / this.scale);
    const left = this.x + x * this.scale, top = this.y + y * this.scale;
    const across = width * this.scale, down = Math.min(height * this.scale, high - 40);
    if (left < 10 || left + Math.min(across, wide - 20) > wide - 10) this.x += (wide - across) / 2 - left;
    if (top < 10 || top + down > high - 10) this.y += (high - down) / 2 - top;
    this.show();
  }
  // Zoom in as far as needed to read, with a place in the middle, as far as there is more of the drawing on both sides.
  centre([x, y, width, height]) {
    if (this.scale < READABLE) this.zoom(READABLE / this.scale);
    const start = (room, whole, middle) => (whole + 24 <= room ? (room - whole) / 2 : Math.min(12, Math.max(room / 2 - middle, room - 12 - whole)));
    this.x = start(this.canvas.clientWidth, this.size[0] * this.scale, (x + width / 2) * this.scale);
    this.y = start(this.canvas.clientHeight, this.size[1] * this.scale, (y + height / 2) * this.scale);
    this.show();
  }
  at(event) {
    const edge = this.svg.getBoundingClientRect();
    return [event.clientX - edge.left, event.clientY - edge.top];
  }
  wheel(event) {
    event.preventDefault();
    const step = event.deltaMode === 1 ? 18 : 1;
    this.zoom(Math.exp((-event.deltaY * step) / (event.ctrlKey ? 120 : 480)), ...this.at(event));
  }
  down(event) {
    this.pointers.set(event.pointerId, this.at(event));
    this.moved = false;
  }
  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const now = this.at(event), others = [...this.pointers].filter(([id]) => id !== event.pointerId);
    if (!this.moved && Math.hypot(now[0] - before[0], now[1] - before[1]) < 4 && !others.length) return;
    if (!this.moved) this.svg.setPointerCapture(event.pointerId);
    this.moved = true;
    this.svg.classList.add("dragging");
    if (others.length) {
      const [, other] = others[0], apart = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
      this.zoom(apart(now) / apart(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    } else this.pan(now[0] - before[0], now[1] - before[1]);
    this.pointers.set(event.pointerId, now);
  }
  up(event) {
    this.pointers.delete(event.pointerId);
    this.svg.classList.remove("dragging");
  }
}
