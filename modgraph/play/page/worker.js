// Runs modgraph in the browser: loads Python, unpacks the packages, and answers the messages of the page one by one.
// modgraph/play/service.py says what the messages are. All files come from the folder of the playground.
// The worker that answers requests (connection.js) loads nothing before `modgraph/start`.

import { ANSWERS } from "./connection.js";
import { Queue } from "./queue.js";

const HOME = new URL("../", import.meta.url).href;
const ENGINE = "pyodide/", PACKAGES = "packages.zip", MORE = "more.zip", RECORD = "page.json";
const WASM = "application/wasm";
const ROOT = "/play", LIBRARY = "/packages";
const FETCHED = ["pyodide.asm.wasm", "python_stdlib.zip"].map((name) => ENGINE + name);

const began = performance.now();
const post = (message) => self.postMessage(JSON.stringify({ jsonrpc: "2.0", ...message }));
const notify = (method, params) => post({ method, params });
const refuse = (id, code, message) => post({ id, error: { code, message } });
const queue = new Queue(refuse);
const isChecking = self.name !== ANSWERS;
let service = null, isRunning = false, later = null; // `later` ends when all packages are there

self.addEventListener("message", ({ data }) => {
  const message = JSON.parse(data);
  if (message.method === "modgraph/start") return begin();
  queue.add(message);
  run();
});

// Between two messages the worker reads those that have arrived meanwhile.
async function run() {
  if (isRunning || service === null) return;
  isRunning = true;
  while (queue.length) {
    await answer(queue.next());
    await nextTask();
  }
  isRunning = false;
}

async function answer(message) {
  const text = JSON.stringify(message);
  try {
    try {
      send(text);
    } catch (error) {
      if (error.type !== "ModuleNotFoundError") throw error;
      await later;
      send(text);
    }
  } catch (error) {
    console.error(error);
    if (message.id !== undefined) refuse(message.id, -32603, String(error.message ?? error));
  }
}

// Post what the service answers, each text as it comes.
function send(text) {
  const answers = service(text);
  for (const each of answers) self.postMessage(each);
  answers.destroy();
}

const { port1, port2 } = new MessageChannel();
const nextTask = () =>
  new Promise((resolve) => {
    port1.onmessage = resolve;
    port2.postMessage(null);
  });

// ------------------------------------------------------------ start

class Progress {
  constructor(sizes) {
    this.total = sizes.reduce((sum, size) => sum + size, 0);
    this.loaded = 0;
  }

  add(what, bytes) {
    this.loaded += bytes;
    notify("modgraph/progress", { what, loaded: Math.min(this.loaded, this.total), total: this.total });
  }
}

// A response whose bytes are counted as they come. WebAssembly compiles while it loads, whatever type a server names.
function count(response, what, progress) {
  if (!response.ok) throw new Error(`cannot load ${response.url}: ${response.status}`);
  const read = async (stream) => {
    for (let part = await stream.read(); !part.done; part = await stream.read()) progress.add(what, part.value.byteLength);
  };
  read(response.clone().body.getReader()).catch(() => {}); // who reads the response itself hears of a failure
  const typed = !response.url.endsWith(".wasm") || response.headers.get("content-type") === WASM;
  // a browser keeps what it compiled of a response of its own
  return typed ? response : new Response(response.body, { headers: { "content-type": WASM } });
}

async function start() {
  const record = await (await fetch(HOME + RECORD)).json();
  const progress = new Progress([...FETCHED, PACKAGES].map((name) => record.bytes[name]));
  const plain = self.fetch;
  const get = async (name, what) => count(await plain(HOME + name), what, progress);
  const packages = get(PACKAGES, "library").then((response) => response.arrayBuffer());
  self.fetch = async (address, options) => {
    const url = new URL(address.url ?? address, HOME).href;
    if (!url.startsWith(HOME)) throw new Error(`the playground loads nothing from elsewhere: ${url}`);
    return count(await plain(url, options), "engine", progress);
  };
  const scripts = ["pyodide.js", "pyodide.asm.js"].map((name) => import(HOME + ENGINE + name));
  const [{ loadPyodide }, { default: createPyodideModule }] = await Promise.all(scripts);
  const lockFileContents = { info: record.python, packages: {} };
  const python = await loadPyodide({ indexURL: HOME + ENGINE, createPyodideModule, lockFileContents });
  python.unpackArchive(await packages, "zip", { extractDir: LIBRARY });
  notify("modgraph/progress", { what: "start", loaded: progress.total, total: progress.total });
  service = python.runPython(START);
  const seconds = (performance.now() - began) / 1000;
  notify("modgraph/ready", { version: record.modgraph, seconds, bytes: progress.total, root: `file://${ROOT}/` });
  later = load(python, plain(HOME + MORE)); // what few requests need comes when the editor works
  run();
  await later;
}

async function load(python, response) {
  python.unpackArchive(await (await response).arrayBuffer(), "zip", { extractDir: LIBRARY });
  python.runPython("import importlib; importlib.invalidate_caches()");
}

const START = `
import os, sys
sys.path.insert(0, "${LIBRARY}")
os.makedirs("${ROOT}", exist_ok=True)
os.chdir("${ROOT}")
from modgraph.play.service import Service
def explain(name):
    from modgraph.cli.explain_command import explain
    return explain(name)
service = Service(explain, is_checking=${isChecking ? "True" : "False"})
service.receive
`;

const begin = () => start().catch((error) => notify("modgraph/failed", { message: String(error.message ?? error) }));
if (isChecking) begin();
