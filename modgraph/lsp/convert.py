"""Converts symbols and items to the JSON of the language server protocol."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from modgraph.diagnostics import Source
from modgraph.lsp.fixes import Fix
from modgraph.lsp.methods import TOKEN_TYPES
from modgraph.lsp.outline import Entry
from modgraph.lsp.places import count_units, message_of, position_of, range_of
from modgraph.lsp.queries import Item, ItemKind
from modgraph.lsp.signatures import Signature
from modgraph.lsp.symbols import Kind

Json = dict[str, Any]
# The numbers of the protocol: of kinds of symbols and of completions, and of severities.
SYMBOL_KINDS = {
    Kind.MODEL: 5,  # class
    Kind.BLOCK: 12,  # function
    Kind.ROUTER_TYPE: 11,  # interface
    Kind.PARAMETER: 7,  # property
    Kind.INPUT: 8,  # field
    Kind.TARGET: 8,
    Kind.MODULE: 19,  # object
    Kind.POOL: 18,  # array
    Kind.ROUTER: 19,
    Kind.ROUNDS: 3,  # namespace
}
VARIABLE = 13  # every other symbol
ITEM_KINDS = {
    ItemKind.OP: 3,  # function
    ItemKind.ROUTER: 7,  # class
    ItemKind.ARGUMENT: 10,  # property
    ItemKind.KEYWORD: 14,
    ItemKind.NAME: 6,  # variable
    ItemKind.OTHER: 9,  # module
}


def item_of(item: Item) -> Json:
    detail = {} if item.detail is None else {"detail": item.detail}
    return {"label": item.label, "kind": ITEM_KINDS[item.kind], **detail}


def action_of(fix: Fix, uri: str) -> Json:
    edit = {"changes": {uri: [{"range": range_of(fix.span), "newText": fix.text}]}}
    messages = [message_of(fix.diagnostic)]
    return {"title": fix.title, "kind": "quickfix", "diagnostics": messages, "edit": edit, "isPreferred": True}


def signature_of(found: Signature) -> Json:
    parameters = [{"label": name, "documentation": doc} for name, doc in found.parameters]
    documentation = {"documentation": found.doc} if found.doc else {}
    information = {"label": found.label, **documentation, "parameters": parameters}
    return {"signatures": [information], "activeSignature": 0, "activeParameter": found.active}


def document_symbol_of(entry: Entry) -> Json:
    return {
        "name": entry.name,
        "kind": SYMBOL_KINDS.get(entry.kind, VARIABLE),
        "range": range_of(entry.span),
        "selectionRange": range_of(entry.name_span),
        "detail": entry.detail,
        "children": [document_symbol_of(each) for each in entry.children],
    }


def encode_tokens(source: Source, found: Iterable[tuple[int, int, str, bool]]) -> list[int]:
    """Semantic tokens as the protocol packs them: five numbers for each, lines and columns relative to the last."""
    data, line, column = list[int](), 0, 0
    for offset, length, kind, declares in found:
        place, text = position_of(source, offset), source.text[offset : offset + length]
        ahead = place["character"] - (column if place["line"] == line else 0)
        data += [place["line"] - line, ahead, count_units(text), TOKEN_TYPES.index(kind), int(declares)]
        line, column = place["line"], place["character"]
    return data
