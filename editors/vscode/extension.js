// Starts `modgraph lsp` and lets the editor talk to it; gives recipes that stand beside specs their schema.
const { existsSync, readdirSync, readFileSync } = require("fs");
const { basename, dirname, join } = require("path");
const { Uri, extensions, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const SCHEMA = "modgraph:recipe";

let client;

async function activate(context) {
  const command = workspace.getConfiguration("modgraph").get("command");
  const options = {
    documentSelector: [{ scheme: "file", language: "modgraph" }],
    synchronize: { fileEvents: workspace.createFileSystemWatcher("**/*.mod") },
  };
  client = new LanguageClient("modgraph", "modgraph", { command, args: ["lsp"] }, options);
  await Promise.all([client.start(), offerSchema(context.extensionPath)]);
}

// The YAML extension completes and checks by the schema, where it is installed.
async function offerSchema(folder) {
  const yaml = await extensions.getExtension("redhat.vscode-yaml")?.activate();
  const content = () => readFileSync(join(folder, "recipe.schema.json"), "utf8");
  yaml?.registerContributor("modgraph", (uri) => (isRecipe(uri) ? SCHEMA : undefined), content);
}

// Whether a spec of the file's name, or of the beginning of its name, stands next to it: mt_rmn_weather.yaml.
// package.json names the schema of those in folders called specs.
function isRecipe(uri) {
  const path = Uri.parse(uri).fsPath, folder = dirname(path);
  if (!/\.ya?ml$/.test(path) || basename(folder) === "specs" || !existsSync(folder)) return false;
  const name = basename(path).replace(/\.ya?ml$/, "");
  const specs = readdirSync(folder).filter((each) => each.endsWith(".mod")).map((each) => each.slice(0, -4));
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  const isMap = /^(weights|random|unused):/m.test(text); // of weights, not a recipe
  return !isMap && specs.some((spec) => name === spec || name.startsWith(`${spec}_`));
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate, isRecipe };
