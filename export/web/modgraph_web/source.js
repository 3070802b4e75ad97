// The bytes of a bundle: given, fetched, or in Node read from a file.

import { BundleError } from "./errors.js";

const SCHEME = /^[a-z][a-z\d+.-]+:/i;

// Throws `BundleError`.
export async function contentOf(source) {
  if (source instanceof Uint8Array) return source;
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (typeof source !== "string" && !(source instanceof URL))
    throw new BundleError("a bundle is loaded from a URL, an ArrayBuffer or a Uint8Array");
  const isFile = globalThis.process?.versions?.node && (!SCHEME.test(source) || String(source).startsWith("file:"));
  return isFile ? readFile(source) : fetched(source);
}

// What messages call it.
export function titleOf(source) {
  return typeof source === "string" || source instanceof URL ? `"${source}"` : "the file";
}

async function fetched(source) {
  try {
    const response = await fetch(source);
    if (response.status === 404) throw new BundleError(`there is no file "${source}"`);
    if (!response.ok) throw new BundleError(`cannot read "${source}": the server answers ${response.status}`);
    return new Uint8Array(await response.arrayBuffer());
  } catch (error) {
    if (error instanceof BundleError) throw error;
    throw new BundleError(`cannot read "${source}": ${error.message}`, "", { cause: error });
  }
}

async function readFile(source) {
  const files = await import("node:fs/promises");
  try {
    const path = String(source).startsWith("file:") ? new URL(source) : source;
    return new Uint8Array(await files.readFile(path));
  } catch (error) {
    if (error.code === "ENOENT") throw new BundleError(`there is no file "${source}"`);
    const reason = /^[A-Z]+: ([^,]+)/.exec(error.message)?.[1] ?? error.message;
    throw new BundleError(`cannot read "${source}": ${reason}`, "", { cause: error });
  }
}
