/** Runs models that modgraph has exported, in browsers and in Node. */

/** A file is no bundle, or arrays do not fit the model: what is wrong, and what to do where that is known. */
export class BundleError extends Error {
  readonly reason: string;
  readonly wayOut: string;
}

export type Data =
  | Float32Array | Float64Array | Int8Array | Int16Array | Int32Array | Uint8Array | Uint8ClampedArray | Uint16Array
  | Uint32Array | BigInt64Array | BigUint64Array;
export type Nested = number | bigint | boolean | readonly Nested[];

/** Examples come first. Without a shape, a typed array has one axis, and rows of numbers the axes that they have. */
export type Input = Data | Nested | { data: Data | readonly (number | bigint | boolean)[]; shape?: readonly number[] };

/** Whole numbers, such as modules and tokens, are given in 32 bits. */
export interface Values {
  data: Float32Array | Int32Array;
  shape: number[];
}

/** The names of classes, where they have any. */
export interface Predicted {
  data: string[] | Float32Array | Int32Array;
  shape: number[];
}

/** An input or output: what each example holds. `String(port)` is as a spec has it: `float[1, 28, 28]`. */
export interface Port {
  readonly name: string;
  readonly dtype: "float" | "token" | "class" | "length" | "edge";
  /** Numbers, and names for axes of any length. */
  readonly shape: readonly (number | string)[];
  /** The vocabulary of tokens, or the number of classes. */
  readonly size: number | null;
  /** The name in the ONNX graph. */
  readonly tensor: string;
  /** Whose classes an output distinguishes, along its last axis. */
  readonly target: string | null;
  readonly classes: readonly string[];
  /** The axis whose length an input gives for each example. */
  readonly along: string;
  /** The axes of the source and the target of edges: numbers, or names. */
  readonly ends: readonly (number | string)[];
  readonly kind: "float32" | "int64";
  toString(): string;
}

export interface Manifest {
  readonly format: number;
  readonly modgraph: string;
  readonly model: string;
  readonly words?: { readonly [input: string]: readonly string[] };
  readonly classes?: { readonly [output: string]: readonly string[] };
  readonly preprocessing?: { readonly [input: string]: unknown };
  readonly [key: string]: unknown;
}

export interface LoadOptions {
  /** Whether the file is checked against the digest that it ends in (true). */
  check?: boolean;
  /** ONNX Runtime for the web, where it is not the one that comes with the module. */
  ort?: unknown;
  /** Where its WebAssembly is, if not next to it. */
  wasmPaths?: string | { mjs?: string | URL; wasm?: string | URL };
  /** How many threads compute, on pages that are isolated (crossOriginIsolated); one on others, and in Node. */
  threads?: number;
}

/** What tokens have left behind, and how many tokens each example has. */
export class Cache {
  readonly values: { readonly [name: string]: { data: Float32Array | BigInt64Array; shape: number[] } };
  readonly counts: readonly number[];
  /** The caches of some examples, in this order; an example may occur several times. */
  take(rows: readonly number[]): Cache;
}

/** The outputs for new tokens, what the routers record if asked for, and the next cache. */
export interface Step {
  outputs: { [name: string]: Values };
  routing: { [name: string]: Values };
  cache: Cache;
}

export interface GenerateOptions {
  /** The most new tokens of a prompt (64). */
  tokens?: number;
  /** 0 takes the most likely token (0). */
  temperature?: number;
  topK?: number | null;
  topP?: number | null;
  seed?: number;
  /** A sequence ends before one of these tokens. */
  stop?: readonly number[];
}

/** The next token of each prompt, null where it has ended; and the modules that the last token before it chose. */
export interface Next {
  tokens: (number | null)[];
  modules: { [prompt: number]: { [route: string]: number[] } };
}

/** An exported model, loaded. */
export class Bundle {
  /** From a URL, in Node also a path, or from bytes. Throws `BundleError`. */
  static load(source: string | URL | ArrayBuffer | Uint8Array, options?: LoadOptions): Promise<Bundle>;
  readonly manifest: Manifest;
  readonly inputs: { readonly [name: string]: Port };
  readonly outputs: { readonly [name: string]: Port };
  /** What the routers record. */
  readonly routing: { readonly [name: string]: Port };
  readonly targets: ReadonlySet<string>;
  readonly leftOut: ReadonlySet<string>;
  /** Outputs by name; with `routing`, what the routers record too. Throws `BundleError` where arrays do not fit. */
  run(inputs: { [name: string]: Input }, options?: { routing?: boolean; chunk?: number }): Promise<{ [name: string]: Values }>;
  /** Outputs by name; of those that distinguish classes, the most likely class. Throws `BundleError`. */
  predict(inputs: { [name: string]: Input }): Promise<{ [name: string]: Predicted }>;
  /** Outputs of new tokens [B, n, …], which follow those of a cache. Throws `BundleError` if the bundle is not stepwise. */
  step(tokens: Input, options?: { cache?: Cache; lengths?: readonly number[]; routing?: boolean; others?: { [name: string]: Input } }): Promise<Step>;
  /** The next tokens of prompts as they come. Throws `BundleError`, and `RangeError` for options out of range. */
  stream(prompts: readonly (readonly number[])[], options?: GenerateOptions & { routing?: boolean }): AsyncGenerator<Next>;
  /** Continues prompts, lists of ids: the new ids of each. */
  generate(prompts: readonly (readonly number[])[], options?: GenerateOptions): Promise<number[][]>;
  /** How a stepwise bundle takes tokens one after another; null for others. */
  readonly stepwise: { readonly tokens: string; readonly axis: string; readonly logits: string | null; readonly longest: number | null } | null;
  classified(output: string, values: Values): Predicted;
  /** Gives back the memory that the model takes. */
  release(): Promise<void>;
}

/** Pixels row by row in grey, RGB or RGBA, as bytes or as fractions from 0 to 1; an `ImageData` is one. */
export interface Picture {
  data: Uint8Array | Uint8ClampedArray | Float32Array | readonly number[];
  width: number;
  height: number;
}

/** An image [1, C, H, W] made of a picture, as the manifest says that the model's images are. Throws `BundleError`. */
export function imageInput(bundle: Pick<Bundle, "manifest" | "inputs">, name: string, picture: Picture,
  options?: { invert?: boolean }): { data: Float32Array; shape: number[] };

/** Tokens [1, T] made of a text, the words that it falls into, and those that the model does not know. Throws `BundleError`. */
export function wordsInput(bundle: Pick<Bundle, "manifest" | "inputs">, name: string, text: string):
  { data: Int32Array; shape: number[]; words: string[]; unknown: string[] };

/** Whether an input takes pieces of words, which contain the blanks between words. */
export function hasPieces(bundle: Pick<Bundle, "manifest">, name: string): boolean;

/** A function that gives the text of each id of a text, in its order; a letter that falls into several pieces comes with the last. */
export function wordsReader(bundle: Pick<Bundle, "manifest">, name: string): (id: number) => string;
