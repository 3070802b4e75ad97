"""The requests of editors that are answered, and what a server says of itself. What answers them is imported at use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TOKEN_TYPES = (
    *("namespace", "class", "function", "type", "parameter", "variable", "property"),
    *("keyword", "string", "number", "operator"),
)
QUICK_FIX = "quickfix"


class Refused(Exception):
    """A request is valid, and cannot be fulfilled; the text says why."""


@dataclass(frozen=True)
class Feature:
    """A request of an editor: the method of `Features` that answers it, and what the server says of itself, `options`
    under `capability`."""

    answer: str
    capability: str
    options: Mapping[str, Any] = field(default_factory=dict)


FEATURES: Mapping[str, Feature] = {
    "textDocument/completion": Feature(
        "completion", "completionProvider", {"triggerCharacters": [">", "(", " ", ",", "="]}
    ),
    "textDocument/signatureHelp": Feature(
        "signature_help", "signatureHelpProvider", {"triggerCharacters": ["(", ",", "="]}
    ),
    "textDocument/codeAction": Feature("code_action", "codeActionProvider", {"codeActionKinds": [QUICK_FIX]}),
    "textDocument/formatting": Feature("formatting", "documentFormattingProvider"),
    "textDocument/hover": Feature("hover", "hoverProvider"),
    "textDocument/inlayHint": Feature("inlay_hint", "inlayHintProvider"),
    "textDocument/semanticTokens/full": Feature(
        "semantic_tokens",
        "semanticTokensProvider",
        {"legend": {"tokenTypes": [*TOKEN_TYPES], "tokenModifiers": ["declaration"]}, "full": True},
    ),
    "textDocument/documentSymbol": Feature("document_symbol", "documentSymbolProvider"),
    "textDocument/definition": Feature("definition", "definitionProvider"),
    "textDocument/references": Feature("references", "referencesProvider"),
    "textDocument/prepareRename": Feature("prepare_rename", "renameProvider", {"prepareProvider": True}),
    "textDocument/rename": Feature("rename", "renameProvider", {"prepareProvider": True}),
}
