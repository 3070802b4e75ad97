// The layout library in a worker of its own, so that no layout holds up a key stroke. A classic script, as ELK is.

self.document = {}; // ELK takes a place without a document for a worker that it has started itself
importScripts("elk.js");
const elk = new ELK();

self.addEventListener("message", ({ data: { id, graph } }) => {
  elk.layout(graph).then((positions) => self.postMessage({ id, positions }), (error) => self.postMessage({ id, error: String(error.message ?? error) }));
});
