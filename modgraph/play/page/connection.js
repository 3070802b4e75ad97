// Two workers that run the front end, as one transport for the language client. Its messages are JSON-RPC texts.
//
// Both know all texts. The first checks each change and does nothing else, so that no key stroke waits; the second answers
// requests. It starts after the first check; until it is ready, and when it has ended, the first answers.

export const CHECKS = "checks", ANSWERS = "answers"; // the names of both
const FAULT = -32603; // the code of an answer that no worker gave
const START = JSON.stringify({ jsonrpc: "2.0", method: "modgraph/start" });

export class Connection {
  // `fail` hears why the engine has ended, `warn` why it goes on with one worker.
  constructor(address, { fail, warn }) {
    Object.assign(this, { address, fail, warn, handlers: new Set(), workers: [], answering: null, asked: new Map(), reason: "" });
  }
  // Start the workers, in the place of earlier ones. The texts are in the editors, so none is lost.
  start() {
    for (const worker of this.workers) worker.terminate();
    this.workers = [this.make(CHECKS), this.make(ANSWERS)];
    Object.assign(this, { answering: this.workers[0], isSingle: true, reason: "" });
  }
  make(name) {
    const worker = new Worker(this.address, { type: "module", name });
    const fail = (reason) => this.workers.includes(worker) && this.failed(worker, reason);
    worker.addEventListener("error", (event) => fail(event.message || "its script cannot be loaded"));
    worker.addEventListener("messageerror", () => fail("it sent something unreadable"));
    worker.addEventListener("message", ({ data }) => this.workers.includes(worker) && this.receive(worker, data));
    return worker;
  }
  receive(worker, text) {
    const { id, method, params } = JSON.parse(text), [first, second] = this.workers;
    if (worker === first && method === "textDocument/publishDiagnostics" && this.isSingle) {
      this.isSingle = false;
      second?.postMessage(START);
    }
    if (worker === second && method === "modgraph/ready") this.answering = second;
    if (method === "modgraph/failed") return this.failed(worker, params.message);
    this.asked.delete(id);
    if (worker === first || id !== undefined) this.hand(text);
  }
  hand(text) {
    this.handlers.forEach((handler) => handler(text));
  }
  // The second worker can be done without: the first answers in its place, also what has been asked.
  failed(worker, reason) {
    const [first] = this.workers;
    if (worker === first) return this.end(reason);
    worker.terminate();
    this.workers.pop();
    this.warn(reason);
    if (worker === this.answering) for (const text of this.asked.values()) first.postMessage(text);
    this.answering = first;
  }
  // No worker answers any longer: requests that wait, and later ones, get the reason.
  end(reason) {
    for (const worker of this.workers) worker.terminate();
    Object.assign(this, { workers: [], reason });
    this.fail(reason);
    for (const [id, text] of this.asked) this.refuse(id, JSON.parse(text).method);
  }
  // A pane gets the reason; the editor's requests get nothing, which is no error to it.
  refuse(id, method) {
    const error = { code: FAULT, message: `the engine has ended: ${this.reason}` };
    this.asked.delete(id);
    this.hand(JSON.stringify({ jsonrpc: "2.0", id, ...(method.startsWith("modgraph/") ? { error } : { result: null }) }));
  }
  // A request goes to the worker that answers, anything else to both.
  send(text) {
    const { id, method } = JSON.parse(text);
    if (id === undefined || !method) return this.workers.forEach((worker) => worker.postMessage(text));
    if (this.reason) return setTimeout(() => this.refuse(id, method)); // the client knows of its request only after this
    if (method !== "initialize") this.asked.set(id, text);
    this.answering.postMessage(text);
  }
  subscribe(handler) {
    this.handlers.add(handler);
  }
  unsubscribe(handler) {
    this.handlers.delete(handler);
  }
}
