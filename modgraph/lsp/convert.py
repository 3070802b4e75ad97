"""Converts spans, diagnostics and symbols to what the language server protocol says.

The protocol counts lines from 0, and UTF-16 units along a line.
"""

from __future__ import annotations

from collections.abc import Iterable

from lsprotocol import types

from modgraph.diagnostics import Diagnostic, Source, Span
from modgraph.lsp.fixes import Fix
from modgraph.lsp.hints import TOKEN_TYPES
from modgraph.lsp.outline import Entry
from modgraph.lsp.signatures import Signature
from modgraph.lsp.symbols import Kind

SYMBOL_KINDS = {
    Kind.MODEL: types.SymbolKind.Class,
    Kind.BLOCK: types.SymbolKind.Function,
    Kind.ROUTER_TYPE: types.SymbolKind.Interface,
    Kind.PARAMETER: types.SymbolKind.Property,
    Kind.INPUT: types.SymbolKind.Field,
    Kind.TARGET: types.SymbolKind.Field,
    Kind.MODULE: types.SymbolKind.Object,
    Kind.POOL: types.SymbolKind.Array,
    Kind.ROUTER: types.SymbolKind.Object,
    Kind.ROUNDS: types.SymbolKind.Namespace,
}


def offset_of(source: Source, position: types.Position) -> int:
    """The offset of a position in a text."""
    lines = source.text.split("\n")
    before = sum(len(line) + 1 for line in lines[: position.line])
    line = lines[position.line] if position.line < len(lines) else ""
    units = line.encode("utf-16-le")[: 2 * position.character]
    return min(len(source.text), before + len(units.decode("utf-16-le", errors="ignore")))


def position_of(source: Source, offset: int) -> types.Position:
    """The position of an offset in a text."""
    line, column = source.position(offset)
    return types.Position(line - 1, _units(source.line(line)[: column - 1]))


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def range_of(span: Span) -> types.Range:
    return types.Range(position_of(span.source, span.start), position_of(span.source, max(span.end, span.start)))


def message_of(diagnostic: Diagnostic) -> types.Diagnostic:
    severity = types.DiagnosticSeverity
    start = types.Position(0, 0)
    advice = f"\nhelp: {diagnostic.advice()}" if diagnostic.advice() else ""
    return types.Diagnostic(
        range=range_of(diagnostic.span) if diagnostic.span is not None else types.Range(start, start),
        message=diagnostic.text() + advice,
        code=diagnostic.code,
        source="modgraph",
        severity=severity.Error if diagnostic.severity == "error" else severity.Warning,
    )


def action_of(fix: Fix, uri: str) -> types.CodeAction:
    edit = types.WorkspaceEdit(changes={uri: [types.TextEdit(range_of(fix.span), fix.text)]})
    kind, messages = types.CodeActionKind.QuickFix, [message_of(fix.diagnostic)]
    return types.CodeAction(title=fix.title, kind=kind, diagnostics=messages, edit=edit, is_preferred=True)


def signature_of(found: Signature) -> types.SignatureHelp:
    parameters = [types.ParameterInformation(label=name, documentation=doc) for name, doc in found.parameters]
    information = types.SignatureInformation(label=found.label, documentation=found.doc or None, parameters=parameters)
    return types.SignatureHelp(signatures=[information], active_signature=0, active_parameter=found.active)


def document_symbol_of(entry: Entry) -> types.DocumentSymbol:
    return types.DocumentSymbol(
        name=entry.name,
        kind=SYMBOL_KINDS.get(entry.kind, types.SymbolKind.Variable),
        range=range_of(entry.span),
        selection_range=range_of(entry.name_span),
        detail=entry.detail,
        children=[document_symbol_of(each) for each in entry.children],
    )


def encode_tokens(source: Source, found: Iterable[tuple[int, int, str, bool]]) -> list[int]:
    """Semantic tokens as the protocol packs them: five numbers for each, lines and columns relative to the last."""
    data, line, column = list[int](), 0, 0
    for offset, length, kind, declares in found:
        place, text = position_of(source, offset), source.text[offset : offset + length]
        ahead = place.character - (column if place.line == line else 0)
        data += [place.line - line, ahead, _units(text), TOKEN_TYPES.index(kind), int(declares)]
        line, column = place.line, place.character
    return data
