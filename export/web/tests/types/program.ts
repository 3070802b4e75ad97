// A program that uses all that the module offers: it is to be accepted, but for what is marked.

import { Bundle, BundleError, imageInput, wordsInput, type Port, type Values } from "../../modgraph_web/modgraph.js";

export async function classes(url: string, image: Float32Array): Promise<string> {
  const bundle = await Bundle.load(new URL(url), { check: true, threads: 2, wasmPaths: { wasm: "ort.wasm" } });
  const port: Port = bundle.inputs.image;
  const outputs = await bundle.run({ image: { data: image, shape: [1, ...port.shape.map(Number)] } }, { routing: true });
  const logits: Values = outputs.logits;
  const { data } = (await bundle.predict({ words: [[1, 2], [3, 4]], time_length: [2, 1] })).logits;
  // @ts-expect-error text is no input
  await bundle.run({ image: "text" });
  // @ts-expect-error ports are read only
  port.name = "other";
  const scaled = imageInput(bundle, "image", new ImageData(8, 8), { invert: false });
  const { unknown, ...words } = wordsInput(bundle, "words", "in the beginning");
  await bundle.run({ image: scaled, words });
  const { cache, outputs: { logits: next } } = await bundle.step([[1, 2], [3, 4]], { lengths: [2, 1] });
  await bundle.step([[next.data[0]]], { cache: cache.take([1]), routing: true });
  for await (const { tokens, modules } of bundle.stream([[1]], { tokens: 4, topP: 0.9, routing: true }))
    if (tokens[0] === null || !modules[0]) break;
  const written: number[][] = await bundle.generate([[1], [2, 3]], { temperature: 0.8, stop: [0] });
  // @ts-expect-error prompts are lists of ids
  await bundle.generate(["in the beginning", written]);
  await bundle.release();
  return `${port} ${logits.shape.length} ${data[0]} ${unknown.join()} ${bundle.manifest.model} ${port.kind === "float32"}`;
}

export function reason(error: unknown): string {
  return error instanceof BundleError ? `${error.message} ${error.wayOut}` : String(error);
}
