// What a route decides for the places of an image, painted over it.

import { paint } from "./picture.js";
import { colourOf } from "./colours.js";

const { element } = globalThis;
const CELL = 132; // pixels of a map's longer side, at least
const OVER = 0.62; // opacity of a colour over the image
const LEAST_RANGE = 0.1; // of gates on the scale of colours, so that rounding is not painted as a pattern

// The image with a colour over each place: `shade(place)` gives [colour, opacity] or null.
function map(bundle, name, image, { rows, columns }, label, shade) {
  const [, , height, width] = image.shape, scale = Math.max(1, Math.round(CELL / Math.max(height, width)));
  const canvas = element("canvas", { class: "map", role: "img", "aria-label": label });
  paint(canvas, image, bundle, name, width * scale, height * scale);
  const context = canvas.getContext("2d"), [wide, high] = [canvas.width / columns, canvas.height / rows];
  for (let at = 0; at < rows * columns; at++) {
    const colour = shade(at);
    if (!colour) continue;
    [context.fillStyle, context.globalAlpha] = colour;
    const [x, y] = [(at % columns) * wide, Math.floor(at / columns) * high];
    context.fillRect(x, y, wide, high);
  }
  return canvas;
}

function figure(canvas, title) {
  return element("figure", {}, canvas, element("figcaption", {}, title));
}

// A map for each choice that a token has, the largest gate's first: each place in the colour of its module.
export function choiceMaps(bundle, route, image, choices, selected) {
  const { places, modules } = route, most = Math.max(1, ...choices.map((each) => each.length));
  return Array.from({ length: most }, (_, rank) => {
    const shade = (at) => {
      const module = choices[places.in_front + at][rank];
      if (module === undefined) return null;
      return [colourOf(module, modules), selected === null || selected === module ? OVER : 0.08];
    };
    const title = most > 1 ? `choice ${rank + 1}` : "the module of each place";
    return figure(map(bundle, places.image, image, places, title, shade), title);
  });
}

// A map for each module, its colour the stronger, the larger its gate, from the least of them all to the largest.
export function gateMaps(bundle, route, image, gates, names, selected) {
  const { places, modules } = route, tokens = gates.slice(places.in_front);
  const all = tokens.flatMap((row) => [...row]), range = Math.max(...all) - Math.min(...all);
  const span = Math.max(LEAST_RANGE, range), least = Math.min(...all) - (span - range) / 2;
  return names.map((name, module) => {
    const shade = (at) => [colourOf(module, modules), 0.85 * ((tokens[at][module] - least) / span)];
    const title = `${name}: gates`;
    const found = figure(map(bundle, places.image, image, places, title, shade), name);
    found.classList.toggle("selected", selected === module);
    return found;
  });
}
