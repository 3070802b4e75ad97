// The buttons of the bar, and keys that do the same.

import { formatDocument, zipSync } from "./codemirror.js";
import { packLink } from "./link.js";

const { element } = globalThis;
const STARTER = `model mine(width=16) {
  input  x: float[8]
  target label: class[3]

  logits = x -> linear(width) -> relu -> linear(3)

  output logits
  loss cross_entropy(logits, label)
}
`;

export function bindActions(app) {
  const acts = {
    open: () => app.open.show(),
    new: () => makeFile(app),
    format: () => formatDocument(app.editor.view),
    pin: () => app.pin(),
    link: () => copyLink(app),
    download: () => download(app.work.active.split("/").pop(), [app.work.files.get(app.work.active)]),
    "download-all": () => download("modgraph.zip", [zipSync(Object.fromEntries([...app.work.files].map(([name, text]) => [name, new TextEncoder().encode(text)])))]),
  };
  for (const [name, act] of Object.entries(acts)) document.querySelector(`.actions [data-do=${name}], .files [data-do=${name}]`).addEventListener("click", act);
  document.addEventListener("keydown", (event) => {
    const act = (event.ctrlKey || event.metaKey) && !event.altKey && { o: acts.open, s: acts.download }[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  });
}

// A spec of the visitor's own, called as no other is.
function makeFile({ work }) {
  const names = [...work.files.keys()], number = [...Array(names.length + 2).keys()].slice(1).find((each) => !names.includes(`mine${each}.mod`));
  work.open(`mine${number}.mod`, STARTER);
}

// The address of the page with all of the work.
export async function writeAddress(work) {
  const address = new URL(`#${await packLink(work)}`, location.href).href;
  history.replaceState(null, "", address);
  return address;
}

async function copyLink({ work, status }) {
  const address = await writeAddress(work);
  try {
    await navigator.clipboard.writeText(address);
    status.say(`link copied: ${address.length.toLocaleString("en")} characters`);
  } catch {
    status.say("the link is in the address bar"); // the browser gives no access to the clipboard
  }
}

function download(name, parts) {
  const address = URL.createObjectURL(new Blob(parts));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
