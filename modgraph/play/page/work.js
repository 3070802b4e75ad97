// The work of a visitor: files, the one in sight, values of parameters, the pinned state. Listeners hear of each change.

import { checkWork, plainWork } from "./link.js";

const KEY = "modgraph.playground", PAUSE = 500; // milliseconds

export class Work extends EventTarget {
  constructor() {
    super();
    Object.assign(this, { files: new Map(), values: new Map(), active: "", pinned: null });
  }
  get spec() {
    return isSpec(this.active) ? this.active : [...this.files.keys()].find((name) => isSpec(name) && stemOf(name) === stemOf(this.active)) ?? [...this.files.keys()].find(isSpec);
  }
  // What a link, the storage or an entry of the library hold.
  take({ files, values = [], active, pinned = null }) {
    Object.assign(this, { files: new Map(files), values: new Map(values), active, pinned });
    this.changed("files");
  }
  write(name, text) {
    if (this.files.get(name) === text) return;
    this.files.set(name, text);
    this.changed("text");
  }
  open(name, text) {
    const spec = this.spec;
    if (!this.files.has(name)) this.files.set(name, text);
    this.active = name;
    if (this.spec !== spec) this.values.clear();
    this.changed("files");
  }
  close(name) {
    const names = [...this.files.keys()], at = names.indexOf(name);
    if (names.length === 1) return false;
    this.files.delete(name);
    if (this.active === name) this.active = names[at + 1] ?? names[at - 1];
    this.changed("files");
    return true;
  }
  set(name, value) {
    if (value === null) this.values.delete(name);
    else this.values.set(name, value);
    this.changed("values");
  }
  reset() {
    this.values.clear();
    this.changed("values");
  }
  pin(state) {
    this.pinned = state;
    this.changed("pin");
  }
  changed(what) {
    this.dispatchEvent(new CustomEvent("change", { detail: what }));
  }
}

export const isSpec = (name) => name.endsWith(".mod");
export const stemOf = (name) => name.replace(/\.[^./]+$/, "");

// What the browser keeps of the work, for a page that began with the same spec; nothing where it refuses to.
export const storage = {
  read() {
    try {
      const found = JSON.parse(localStorage.getItem(KEY));
      return { ...checkWork(found), start: String(found.start) };
    } catch {
      return null; // no storage, or something that is not ours
    }
  },
  write(work, start) {
    try {
      localStorage.setItem(KEY, JSON.stringify({ ...plainWork(work), start }));
    } catch {} // no storage, or it is full: the address holds the work
  },
};

// Call something once when calls have ceased for a while; `isWaiting` says whether one is due.
export function afterPause(act, pause = PAUSE) {
  let timer = 0;
  const call = () => {
    clearTimeout(timer);
    call.isWaiting = true;
    timer = setTimeout(() => ((call.isWaiting = false), act()), pause);
  };
  return call;
}
