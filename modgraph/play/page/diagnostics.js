// Messages while one types. A change is sent at once; while its messages are awaited, further ones are gathered.

import { EditorView, LSPPlugin, setDiagnostics } from "./codemirror.js";

const SEVERITIES = ["error", "error", "warning", "info", "hint"];
const METHOD = "textDocument/publishDiagnostics";
const LONGEST = 5000; // milliseconds that a change waits for the messages of the one before

// `hear` gets the messages of each file as they come, and whether its text is that of the messages.
export function diagnostics(hear) {
  let since = 0, isDirty = false, timer = 0;
  const send = (client) => {
    clearTimeout(timer);
    [since, isDirty] = [performance.now(), false];
    client.sync();
  };
  const changed = (client) => {
    isDirty = true;
    clearTimeout(timer);
    const wait = since ? LONGEST : 0;
    timer = setTimeout(() => send(client), wait);
  };
  const publish = (client, params) => {
    since = 0;
    const view = client.workspace.getFile(params.uri)?.getView(), plugin = view && LSPPlugin.get(view);
    if (plugin) {
      view.dispatch(setDiagnostics(view.state, params.diagnostics.map((each) => place(plugin, each))));
      hear(params.uri, params.diagnostics, plugin.unsyncedChanges.empty);
    }
    if (isDirty) send(client);
    return true;
  };
  const watch = EditorView.updateListener.of((update) => {
    const plugin = update.docChanged && LSPPlugin.get(update.view);
    if (plugin) changed(plugin.client);
  });
  return { clientCapabilities: { textDocument: { publishDiagnostics: { versionSupport: true } } }, notificationHandlers: { [METHOD]: publish }, editorExtension: watch };
}

// A message of the server as the editor underlines it.
function place(plugin, { range, severity, message, code }) {
  const at = (position) => plugin.unsyncedChanges.mapPos(plugin.fromPosition(position, plugin.syncedDoc));
  const from = at(range.start);
  return { from, to: Math.max(from, at(range.end)), severity: SEVERITIES[severity ?? 1], message: code ? `${message}\n${code}` : message };
}
