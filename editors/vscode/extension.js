// Starts `modgraph lsp` and lets the editor talk to it.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function activate() {
  const command = workspace.getConfiguration("modgraph").get("command");
  const server = { command, args: ["lsp"] };
  const options = { documentSelector: [{ scheme: "file", language: "modgraph" }] };
  client = new LanguageClient("modgraph", "modgraph", server, options);
  return client.start();
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
