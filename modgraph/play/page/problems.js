// The messages of the file in sight, in the words of the command line, with the line and its caret.

const { element } = globalThis;

export class Problems {
  // `go` puts the cursor at a place, `explain` displays the help of a word.
  constructor(place, { go, explain }) {
    Object.assign(this, { place, go, explain });
  }
  // Without `messages`, the file has not been checked yet.
  show(messages) {
    const none = messages ? "no messages" : "not checked yet";
    this.place.replaceChildren(...(messages?.length ? messages.map((each) => this.row(each)) : [element("p", { class: "muted" }, none)]));
  }
  row({ range: { start }, severity, code, message, data }) {
    const link = (text, act) => element("button", { type: "button", class: "link", onclick: act }, text);
    return element("article", { class: `problem ${severity === 1 ? "error" : "warning"}`, "data-code": code },
      element("pre", {}, (data?.rendered ?? message).trimEnd()),
      element("p", {}, link(`line ${start.line + 1}`, () => this.go(start.line, start.character)), code ? " · " : "", code ? link(`explain ${code}`, () => this.explain(code)) : ""));
  }
}
