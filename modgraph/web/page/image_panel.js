// An input that is an image: to draw, to drop a file on, or as an example has it.

import { imageInput } from "../modgraph_web/modgraph.js";
import { panel } from "./panel.js";
import { Pen } from "./pen.js";
import { paint } from "./picture.js";

const { element } = globalThis;
const SIDE = 280; // pixels of the longer side to draw on, at least
const THICK = { least: 3, most: 22, first: 9 }; // hundredths of the shorter side

export class ImagePanel {
  constructor(bundle, port, changed) {
    const [, height, width] = port.shape, scale = Math.max(1, Math.ceil(SIDE / Math.max(height, width)));
    Object.assign(this, { bundle, port, changed, exact: null });
    this.canvas = element("canvas", { width: width * scale, height: height * scale, tabindex: "0", role: "application",
      "aria-label": `draw ${port.name}: arrow keys move the pen, space sets it down and lifts it, Backspace clears` });
    this.cursor = element("i", { class: "cursor", hidden: true });
    this.seen = element("canvas", { class: "thumbnail", role: "img", "aria-label": "what the model sees" });
    this.context = this.canvas.getContext("2d", { willReadFrequently: true });
    this.pen = new Pen(this.canvas, this.cursor, () => this.follow(), () => this.clear());
    this.pen.thickness = THICK.first / 100;
    this.place = panel(bundle, port, this.frame(), this.controls(),
      element("p", { class: "muted keys" }, "Draw with mouse, finger or pen; or with arrow keys, where space sets the pen down and lifts it."));
    this.fill();
  }
  frame() {
    const guides = (this.bundle.manifest.preprocessing[this.port.name].places ?? []).map(guide);
    const frame = element("div", { class: "draw" }, this.canvas, guides, this.cursor);
    const over = (event) => {
      event.preventDefault();
      frame.classList.toggle("over", event.type === "dragover");
    };
    frame.addEventListener("dragover", over);
    frame.addEventListener("dragleave", over);
    frame.addEventListener("drop", (event) => {
      over(event);
      if (event.dataTransfer.files.length) this.open(event.dataTransfer.files[0]);
    });
    return frame;
  }
  controls() {
    const button = (text, act) => element("button", { type: "button", onclick: act }, text);
    const file = element("input", { type: "file", accept: "image/*", "aria-label": `an image file for ${this.port.name}`, onchange: () => file.files.length && this.open(file.files[0]) });
    const thick = element("input", { type: "range", min: THICK.least, max: THICK.most, value: THICK.first, "aria-label": "thickness of the pen", oninput: () => {
      this.pen.thickness = thick.value / 100;
    } });
    this.fault = element("p", { class: "fault", role: "alert", hidden: true });
    return element("div", { class: "controls" }, button("Clear", () => this.clear()), button("Invert", () => this.invert()),
      element("label", { class: "file" }, "Open image", file), element("label", {}, "Pen ", thick),
      element("span", { class: "seen" }, element("span", { class: "muted" }, "the model sees "), this.seen), this.fault);
  }
  fill(colour = "#000", left = 0, top = 0, width = this.canvas.width, height = this.canvas.height) {
    this.context.fillStyle = colour;
    this.context.fillRect(left, top, width, height);
  }
  clear() {
    this.pen.at = [0.5, 0.5];
    this.fill();
    this.follow();
  }
  invert(left = 0, top = 0, width = this.canvas.width, height = this.canvas.height) {
    this.context.globalCompositeOperation = "difference";
    this.context.fillStyle = "#fff";
    this.context.fillRect(left, top, width, height);
    this.context.globalCompositeOperation = "source-over";
    this.follow();
  }
  follow() {
    this.exact = null;
    this.changed();
  }
  // A file's picture, as large as it fits whole, in the middle; dark things on a light ground are made light on dark
  // where the model knows them so.
  async open(file) {
    this.fault.hidden = true;
    let image;
    try {
      image = await createImageBitmap(file);
    } catch {
      this.fault.textContent = `${file.name} is no image that this browser can read.`;
      this.fault.hidden = false;
      return;
    }
    const { width, height } = this.canvas, fit = Math.min(width / image.width, height / image.height);
    const [wide, high] = [image.width * fit, image.height * fit];
    this.fill();
    this.context.imageSmoothingQuality = "high";
    const place = [(width - wide) / 2, (height - high) / 2, wide, high].map(Math.round);
    this.fill("#fff", ...place); // behind what is transparent
    this.context.drawImage(image, ...place);
    if (this.bundle.manifest.preprocessing[this.port.name].ground === "dark" && this.border(...place) > 127.5) this.invert(...place);
    else this.follow();
  }
  // The mean light along the border of a part.
  border(left, top, width, height) {
    const sides = [[left, top, width, 1], [left, top + height - 1, width, 1], [left, top, 1, height], [left + width - 1, top, 1, height]];
    const light = sides.flatMap((side) => [...this.context.getImageData(...side).data].filter((_, at) => at % 4 < 3));
    return light.reduce((sum, value) => sum + value, 0) / light.length;
  }
  set(array) {
    this.exact = array;
    paint(this.canvas, array, this.bundle, this.port.name, this.canvas.width, this.canvas.height);
  }
  made() {
    const image = this.context.getImageData(0, 0, this.canvas.width, this.canvas.height);
    return imageInput(this.bundle, this.port.name, image, { invert: false });
  }
  value() {
    const array = this.exact ?? this.made();
    paint(this.seen, array, this.bundle, this.port.name);
    return array;
  }
}

// Where one of several things is to be: [left, top, width, height], as shares of the image.
function guide([left, top, width, height]) {
  const made = element("i", { class: "guide" });
  Object.assign(made.style, { left: `${100 * left}%`, top: `${100 * top}%`, width: `${100 * width}%`, height: `${100 * height}%` });
  return made;
}
