// What the bar says: how far loading is, that the worker is ready, or why it has ended and how to go on.

const { element } = globalThis;
const NAMES = { engine: "loading Python", library: "loading modgraph", start: "starting" };
const STARTING = "starting Python, which takes some seconds";
const find = (selector) => document.querySelector(selector);

export class Status {
  constructor(restart) {
    Object.assign(this, { restart, line: find(".bar .status"), bar: find(".bar progress"), notice: find(".notice") });
  }
  say(text) {
    this.line.textContent = text;
  }
  progress(what, loaded, total) {
    const amount = total ? `: ${(loaded / 1e6).toFixed(1)} of ${(total / 1e6).toFixed(1)} MB` : "";
    this.say(total && loaded >= total ? STARTING : `${NAMES[what] ?? what}${amount}`);
    this.bar.hidden = false;
    if (total && loaded < total) this.bar.value = loaded / total;
    else this.bar.removeAttribute("value");
    return true;
  }
  ready(seconds) {
    this.bar.hidden = true;
    document.body.dataset.state = "ready";
    this.say(`ready after ${seconds.toFixed(1)} s`);
  }
  fail(reason) {
    this.bar.hidden = true;
    document.body.dataset.state = "failed";
    this.say("not running");
    this.notify(`The engine has ended: ${reason}. The texts are kept.`, "Start it again", () => this.restart());
  }
  warn(reason) {
    this.notify(`The second engine has ended: ${reason}. From now on, messages wait while results are computed.`);
  }
  // Display a notice with a way out.
  notify(text, label, act) {
    const leave = (then) => () => ((this.notice.hidden = true), then?.());
    const button = (name, then) => element("button", { type: "button", onclick: leave(then) }, name);
    this.notice.replaceChildren(element("span", {}, text), label ? button(label, act) : "", button("Close"));
    this.notice.hidden = false;
  }
}
