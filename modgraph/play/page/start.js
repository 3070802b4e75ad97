// What the page begins with: what its link holds, else what the browser has kept, else a spec of the library.

import { DamagedLink, unpackLink } from "./link.js";
import { storage } from "./work.js";

export async function readWork({ work, status, first, start }) {
  const kept = storage.read(), linked = await readLink(status), mine = kept?.start === start ? kept : null;
  work.take(linked ?? mine ?? workOf(first));
  if (kept && kept !== mine || linked && isOther(kept, linked)) status.notify("Your files of the last visit are kept.", "Open them", () => work.take(kept));
  addEventListener("hashchange", async () => {
    const other = await readLink(status);
    if (other) work.take(other);
  });
}

// An entry of the library as work.
export const workOf = ({ files, open }) => ({ files: Object.entries(files), active: open });

const isOther = (kept, linked) => kept && JSON.stringify([...kept.files]) !== JSON.stringify([...linked.files]);

async function readLink(status) {
  try {
    return await unpackLink(location.hash);
  } catch (error) {
    if (!(error instanceof DamagedLink)) throw error;
    status.notify(`The link cannot be opened: ${error.message}. Ask for it once more, as a whole.`);
    return null;
  }
}
