// Texts that the page holds compressed, and libraries among them, each unpacked when it is first needed.

const libraries = {};

async function textOf(id) {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent.trim()), (each) => each.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

function unpack(id) {
  libraries[id] = libraries[id] || textOf(id).then((text) => void document.head.append(element("script", {}, text)));
  return libraries[id];
}
