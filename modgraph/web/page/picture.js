// Numbers of an image input as pixels.

// Draw an image [1, C, H, W] on a canvas of its size, or of another.
export function paint(canvas, array, bundle, name, width = array.shape[3], height = array.shape[2]) {
  const small = document.createElement("canvas");
  [small.width, small.height] = [array.shape[3], array.shape[2]];
  small.getContext("2d").putImageData(pixelsOf(array, bundle.manifest.preprocessing[name]), 0, 0);
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.imageSmoothingEnabled = false;
  context.drawImage(small, 0, 0, width, height);
  return canvas;
}

function pixelsOf({ data, shape: [, channels, height, width] }, how) {
  const size = height * width, pixels = new ImageData(width, height);
  const light = lightOf(data, channels, size, how);
  for (let at = 0; at < size; at++) {
    for (let colour = 0; colour < 3; colour++) pixels.data[4 * at + colour] = 255 * light(channels === 3 ? colour : 0, at);
    pixels.data[4 * at + 3] = 255;
  }
  return pixels;
}

// The light of a number, from 0 to 1: by the mean and deviation of its channel, else from the least to the most.
function lightOf(data, channels, size, how) {
  const at = (list, channel) => (Array.isArray(list) ? list[channel % list.length] : list);
  if (how?.mean && how?.deviation) return (channel, pixel) => data[channel * size + pixel] * at(how.deviation, channel) + at(how.mean, channel);
  let [least, most] = [0, 1];
  for (const value of data) [least, most] = [Math.min(least, value), Math.max(most, value)];
  return (channel, pixel) => (data[channel * size + pixel] - least) / (most - least);
}
