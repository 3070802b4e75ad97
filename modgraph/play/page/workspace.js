// The open files as the language server knows them: an editor for each, also for those out of sight.

import { LSPPlugin, Workspace } from "./codemirror.js";

export const ROOT = "file:///play/";

export const uriOf = (name) => ROOT + name.split("/").map(encodeURIComponent).join("/");
export const nameOf = (uri) => (uri.startsWith(ROOT) ? decodeURIComponent(uri.slice(ROOT.length)) : null);

export class Files extends Workspace {
  files = [];
  constructor(client, display) {
    super(client);
    this.display = display; // displays the editor of a URI, opening its file first
  }
  openFile(uri, languageId, view) {
    const file = { uri, languageId, version: 0, doc: view.state.doc, getView: () => view };
    this.files.push(file);
    this.client.didOpen(file);
  }
  closeFile(uri) {
    this.files = this.files.filter((file) => file.uri !== uri);
    this.client.didClose(uri);
  }
  // What has changed in each editor since it was last sent.
  syncFiles() {
    return this.files.flatMap((file) => {
      const view = file.getView(), plugin = LSPPlugin.get(view), changes = plugin?.unsyncedChanges;
      if (!changes || changes.empty) return [];
      const prevDoc = file.doc;
      Object.assign(file, { doc: view.state.doc, version: file.version + 1 });
      plugin.clear();
      return [{ file, changes, prevDoc }];
    });
  }
  displayFile(uri) {
    return this.display(uri);
  }
}
