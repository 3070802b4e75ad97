// The editors, one for each open file, in a shadow of the page: so their styles need no inline style sheet.

import {
  EditorState, EditorView, basicSetup, formatKeymap, hoverTooltips, jumpToDefinitionKeymap, keymap,
  renameKeymap, StreamLanguage, serverCompletion, signatureHelp, yaml, findReferencesKeymap,
} from "./codemirror.js";
import { colours } from "./language.js";
import { uriOf } from "./workspace.js";

const theme = EditorView.theme({
  "&": { height: "100%", backgroundColor: "var(--paper)", color: "var(--ink)", fontSize: "13px" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--paper)", color: "var(--muted)", borderRight: "1px solid var(--group-line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--accent) 7%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "color-mix(in srgb, var(--accent) 28%, transparent)" },
  ".cm-tooltip, .cm-panels": { backgroundColor: "var(--group)", color: "var(--ink)", border: "1px solid var(--group-line)" },
  ".cm-tooltip": { borderRadius: "6px", maxWidth: "min(560px, 92vw)", boxShadow: "0 4px 14px rgb(0 0 0 / .18)" },
  ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--paper)" },
  ".cm-lsp-documentation": { maxHeight: "320px", overflow: "auto", fontSize: "12.5px" },
  ".cm-lsp-documentation pre": { whiteSpace: "pre-wrap", fontFamily: "var(--mono)" },
  ".cm-diagnosticText": { whiteSpace: "pre-wrap", fontFamily: "var(--mono)", fontSize: "12px" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { backgroundColor: "color-mix(in srgb, var(--accent) 25%, transparent)" },
  ".cm-searchMatch": { backgroundColor: "var(--found)" },
  ".cm-textfield, .cm-button": { backgroundColor: "var(--box)", backgroundImage: "none", color: "var(--ink)", border: "1px solid var(--group-line)", borderRadius: "4px" },
  ".cm-panel.cm-search label": { color: "var(--ink)" },
});

// For several lines that it inserts at once, Chromium makes elements with the style of what they replace, which the
// page's policy refuses. So the editor inserts them.
const lines = EditorView.domEventHandlers({
  beforeinput: ({ inputType, data }, view) => {
    if (inputType !== "insertText" || !data?.includes("\n")) return false;
    view.dispatch(view.state.replaceSelection(data), { userEvent: "input", scrollIntoView: true });
    return true;
  },
});

// A text to be read in an editor's clothes.
export function readOnly(parent, language, label) {
  const extensions = [basicSetup, EditorState.readOnly.of(true), EditorView.editable.of(false), EditorView.contentAttributes.of({ tabindex: "0", "aria-label": label }), EditorView.lineWrapping, language, colours, theme];
  return new EditorView({ state: EditorState.create({ extensions }), parent: shadow(parent), root: parent.shadowRoot });
}

const shadow = (host) => host.shadowRoot ?? host.attachShadow({ mode: "open" });

export class Editor {
  // `hear` gets the name and the text of a file that was edited, and `moved` the view whose cursor has moved.
  constructor(host, { client, language, edited, moved }) {
    Object.assign(this, { host, client, language, edited, moved, views: new Map(), displayed: null });
    shadow(host);
  }
  get view() {
    return this.views.get(this.displayed);
  }
  // Make an editor for each file with its text, and none for others; show one.
  show(files, active) {
    for (const [name, view] of this.views) if (!files.has(name)) this.remove(name, view);
    for (const [name, text] of files) {
      if (!this.views.has(name)) this.views.set(name, this.make(name, text));
      if (this.views.get(name).state.doc.toString() !== text) this.replace(text, this.views.get(name));
    }
    const isOther = this.displayed !== active;
    this.displayed = active;
    for (const [name, view] of this.views) view.dom.style.setProperty("display", name === active ? "" : "none", "important"); // its own style is important too
    if (isOther) this.view.requestMeasure();
  }
  // Replace a text by another in one step, which can be undone.
  replace(text, view = this.view) {
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, userEvent: "input" });
  }
  remove(name, view) {
    this.views.delete(name);
    view.destroy();
  }
  clear() {
    for (const [name, view] of this.views) this.remove(name, view);
  }
  make(name, text) {
    const isSpec = name.endsWith(".mod");
    const watch = EditorView.updateListener.of((update) => {
      if (update.docChanged) this.edited(name, update.state.doc.toString());
      if (update.selectionSet || update.docChanged) this.moved(update.view);
    });
    const extensions = [
      basicSetup, isSpec ? this.language : StreamLanguage.define(yaml), colours, theme, EditorView.lineWrapping, lines, watch,
      EditorView.contentAttributes.of({ "aria-label": `text of ${name}` }), this.client.plugin(uriOf(name), isSpec ? "modgraph" : "yaml"),
    ];
    return new EditorView({ doc: text, extensions, parent: this.host.shadowRoot, root: this.host.shadowRoot });
  }
  // Put the cursor at a line and a column, from 0.
  go(line, column, isFocused = true) {
    const { view } = this, at = view.state.doc.line(Math.min(line + 1, view.state.doc.lines));
    view.dispatch({ selection: { anchor: Math.min(at.from + column, at.to) }, scrollIntoView: true });
    if (isFocused) view.focus();
  }
  word() {
    const { state } = this.view, range = state.wordAt(state.selection.main.head);
    return range ? state.sliceDoc(range.from, range.to) : "";
  }
}

export const SERVER_EXTENSIONS = [serverCompletion(), hoverTooltips(), signatureHelp(), keymap.of([...formatKeymap, ...renameKeymap, ...jumpToDefinitionKeymap, ...findReferencesKeymap])];