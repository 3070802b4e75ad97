// Messages that wait for Python, in order: what a later one makes pointless is dropped.

const CHANGE = "textDocument/didChange";
const CANCELLED = -32800, OUTDATED = -32801;

const uriOf = ({ params }) => params?.textDocument?.uri ?? params?.uri;

export class Queue {
  // `refuse(id, code, message)` answers a request that is dropped.
  constructor(refuse) {
    this.refuse = refuse;
    this.waiting = [];
  }

  get length() {
    return this.waiting.length;
  }

  add(message) {
    if (message.method === "$/cancelRequest") {
      this.drop((each) => each.id === message.params.id, CANCELLED, "cancelled");
      return;
    }
    if (message.method === CHANGE) {
      // the change has the whole text, so an earlier one of the same text is not needed
      this.drop((each) => each.method === CHANGE && uriOf(each) === uriOf(message), OUTDATED, "");
      this.drop(isOfPane, OUTDATED, "the text has changed since");
    }
    this.waiting.push(message);
  }

  // The next message: a pane, which takes long, waits for all else. It is asked of the last text, so it may.
  next() {
    const first = this.waiting.findIndex((each) => !isOfPane(each));
    return this.waiting.splice(Math.max(0, first), 1)[0];
  }

  drop(isDropped, code, reason) {
    const dropped = this.waiting.filter(isDropped);
    this.waiting = this.waiting.filter((each) => !dropped.includes(each));
    for (const each of dropped) if (each.id !== undefined) this.refuse(each.id, code, reason);
  }
}

// A request of a pane depends on a text: it has its uri.
function isOfPane({ id, method, params }) {
  return id !== undefined && method.startsWith("modgraph/") && params?.uri !== undefined && method !== "modgraph/read";
}
