// A pen on a canvas: mouse, finger, stylus, and arrow keys.

const STEP = 1 / 28; // of the width, for each press of an arrow; a quarter of it with shift
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Pen {
  constructor(canvas, cursor, onDraw, onClear) {
    Object.assign(this, { canvas, cursor, onDraw, onClear, at: [0.5, 0.5], isDown: false, pointer: null, thickness: 0.1 });
    this.context = canvas.getContext("2d", { willReadFrequently: true });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.drag(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => (this.pointer = null));
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("focus", () => this.point(canvas.matches(":focus-visible")));
    canvas.addEventListener("blur", () => this.lift());
  }
  // From one place to another, each from 0 to 1 across and down.
  stroke(from, to) {
    const { width, height } = this.canvas, { context } = this;
    Object.assign(context, { strokeStyle: "#fff", lineCap: "round", lineJoin: "round", lineWidth: this.thickness * Math.min(width, height) });
    context.beginPath();
    context.moveTo(from[0] * width, from[1] * height);
    context.lineTo(to[0] * width, to[1] * height);
    context.stroke();
    this.at = to;
    this.onDraw();
  }
  placeOf(event) {
    const edge = this.canvas.getBoundingClientRect();
    return [(event.clientX - edge.left) / edge.width, (event.clientY - edge.top) / edge.height];
  }
  press(event) {
    if (event.button) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.pointer = event.pointerId;
    this.cursor.hidden = true;
    const place = this.placeOf(event);
    this.stroke(place, place);
  }
  drag(event) {
    if (event.pointerId !== this.pointer) return;
    for (const each of event.getCoalescedEvents?.() ?? [event]) this.stroke(this.at, this.placeOf(each));
  }
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = ARROWS[event.key];
    if (arrow) this.move(arrow.map((way) => way * STEP * (event.shiftKey ? 0.25 : 1)));
    else if (event.key === " ") this.toggle();
    else if (event.key === "Backspace" || event.key === "Delete") this.onClear();
    else return;
    event.preventDefault();
    this.point(true);
  }
  move([across, down]) {
    const to = [this.at[0] + across, this.at[1] + down].map((part) => Math.min(1, Math.max(0, part)));
    if (this.isDown) this.stroke(this.at, to);
    else this.at = to;
  }
  toggle() {
    this.isDown = !this.isDown;
    if (this.isDown) this.stroke(this.at, this.at);
  }
  lift() {
    this.isDown = false;
    this.point(false);
  }
  // Display where the keys' pen is.
  point(visible) {
    this.cursor.hidden = !visible;
    this.cursor.style.left = `${100 * this.at[0]}%`;
    this.cursor.style.top = `${100 * this.at[1]}%`;
    this.cursor.classList.toggle("down", this.isDown);
  }
}
