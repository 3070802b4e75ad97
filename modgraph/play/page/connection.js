// The worker that runs the front end, as a transport for the language client. Its messages are JSON-RPC texts.

export class Connection {
  // `fail` hears why the worker has ended.
  constructor(address, fail) {
    Object.assign(this, { address, fail, handlers: new Set(), worker: null });
  }
  // Start the worker, in the place of an earlier one. The texts are in the editors, so none is lost.
  start() {
    this.worker?.terminate();
    const worker = new Worker(this.address, { type: "module" });
    const fail = (reason) => this.worker === worker && this.fail(reason);
    worker.addEventListener("error", (event) => fail(event.message || "its script cannot be loaded"));
    worker.addEventListener("messageerror", () => fail("it sent something unreadable"));
    worker.addEventListener("message", ({ data }) => this.handlers.forEach((handler) => handler(data)));
    this.worker = worker;
  }
  send(message) {
    this.worker.postMessage(message);
  }
  subscribe(handler) {
    this.handlers.add(handler);
  }
  unsubscribe(handler) {
    this.handlers.delete(handler);
  }
}
