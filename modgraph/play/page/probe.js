const state = document.getElementById("state");
const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
worker.addEventListener("message", ({ data }) => {
  const { method, params } = JSON.parse(data);
  if (method?.startsWith("modgraph/")) state.textContent = JSON.stringify({ method, ...params });
});
