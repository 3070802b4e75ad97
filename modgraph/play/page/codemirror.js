// What the page uses of CodeMirror, and of what renders Markdown, cleans HTML and packs files.

export { basicSetup } from "codemirror";
export { EditorState } from "@codemirror/state";
export { EditorView, keymap } from "@codemirror/view";
export { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
export { setDiagnostics } from "@codemirror/lint";
// Of the legacy modes, YAML alone is vendored.
export { yaml } from "@codemirror/legacy-modes";
export { tags } from "@lezer/highlight";
export {
  LSPClient, LSPPlugin, Workspace, findReferencesKeymap, formatDocument, formatKeymap, hoverTooltips, jumpToDefinitionKeymap, renameKeymap, serverCompletion, signatureHelp,
} from "@codemirror/lsp-client";
export { default as DOMPurify } from "dompurify";
export { zipSync } from "fflate";
export { Marked } from "marked";
