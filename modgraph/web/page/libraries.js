// Libraries of the page, each loaded when it is first needed.

const { element } = globalThis;
const loading = {};

export function load(name) {
  loading[name] ??= new Promise((resolve, reject) => {
    const script = element("script", { src: new URL(`${name}.js`, import.meta.url).href });
    script.addEventListener("load", resolve);
    script.addEventListener("error", () => reject(new Error(`page/${name}.js is missing`)));
    document.head.append(script);
  });
  return loading[name];
}

globalThis.unpack = load; // for charts, whose library other pages contain
