// Two workers that run the front end, as one transport for the language client. Its messages are JSON-RPC texts.
//
// Both know all texts. The first checks each change and does nothing else, so that no key stroke waits; the second answers
// requests. It starts after the first check; until it is ready, the first answers.

export const CHECKS = "checks", ANSWERS = "answers"; // the names of both
const START = JSON.stringify({ jsonrpc: "2.0", method: "modgraph/start" });

export class Connection {
  // `fail` hears why the engine has ended, `warn` why it goes on with one worker.
  constructor(address, { fail, warn }) {
    Object.assign(this, { address, fail, warn, handlers: new Set(), workers: [], answering: null });
  }
  // Start the workers, in the place of earlier ones. The texts are in the editors, so none is lost.
  start() {
    for (const worker of this.workers) worker.terminate();
    this.workers = [this.make(CHECKS), this.make(ANSWERS)];
    Object.assign(this, { answering: this.workers[0], isAlone: true });
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
    if (worker === first && method === "textDocument/publishDiagnostics" && this.isAlone) {
      this.isAlone = false;
      second?.postMessage(START);
    }
    if (worker === second && method === "modgraph/ready") this.answering = second;
    if (worker === second && method === "modgraph/failed") this.failed(second, params.message);
    if (worker === first || id !== undefined) this.handlers.forEach((handler) => handler(text));
  }
  // A second worker that cannot start is done without: the first goes on to answer.
  failed(worker, reason) {
    if (worker === this.workers[0] || worker === this.answering) return this.fail(reason);
    worker.terminate();
    this.workers.pop();
    this.warn(reason);
  }
  // A request goes to the worker that answers, anything else to both.
  send(text) {
    const { id, method } = JSON.parse(text);
    if (id !== undefined && method) this.answering.postMessage(text);
    else for (const worker of this.workers) worker.postMessage(text);
  }
  subscribe(handler) {
    this.handlers.add(handler);
  }
  unsubscribe(handler) {
    this.handlers.delete(handler);
  }
}
