"""The language server protocol, over standard input and output."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlparse

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from modgraph.diagnostics import Diagnostic, Report, Source, Span
from modgraph.lsp.analysis import Analysis, analyse
from modgraph.lsp.queries import complete, definition, hover
from modgraph.syntax import read
from modgraph.syntax.format import format_source
from modgraph.version import VERSION

server = LanguageServer("modgraph", VERSION)


def _analysis(uri: str) -> Analysis:
    parts, document = urlparse(uri), server.workspace.text_documents.get(uri)
    path = unquote(parts.path) if parts.scheme == "file" else uri
    source = Source(path, document.source) if document is not None else read(path, Report())
    return analyse(source or Source(path, ""))


def _place(params: types.CompletionParams | types.HoverParams | types.DefinitionParams) -> tuple[Analysis, int]:
    """A text and a place in it; the protocol counts UTF-16 units along a line."""
    analysis, position = _analysis(params.text_document.uri), params.position
    lines = analysis.source.text.split("\n")
    before = sum(len(line) + 1 for line in lines[: position.line])
    line = lines[position.line] if position.line < len(lines) else ""
    units = line.encode("utf-16-le")[: 2 * position.character]
    return analysis, before + len(units.decode("utf-16-le", errors="ignore"))


def _range(span: Span) -> types.Range:
    def position(offset: int) -> types.Position:
        line, column = span.source.position(offset)
        text = span.source.line(line)[: column - 1]
        return types.Position(line - 1, len(text.encode("utf-16-le")) // 2)

    return types.Range(position(span.start), position(max(span.end, span.start)))


def _message(diagnostic: Diagnostic) -> types.Diagnostic:
    severity = types.DiagnosticSeverity
    start = types.Position(0, 0)
    advice = f"\nhelp: {diagnostic.advice()}" if diagnostic.advice() else ""
    return types.Diagnostic(
        range=_range(diagnostic.span) if diagnostic.span is not None else types.Range(start, start),
        message=diagnostic.text() + advice,
        code=diagnostic.code,
        source="modgraph",
        severity=severity.Error if diagnostic.severity == "error" else severity.Warning,
    )


@server.feature(types.TEXT_DOCUMENT_DID_OPEN)
@server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
def publish(params: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams) -> None:
    uri = params.text_document.uri
    analysis = _analysis(uri)
    here = [each for each in analysis.diagnostics if each.span is None or each.span.source is analysis.source]
    found = types.PublishDiagnosticsParams(uri=uri, diagnostics=[_message(each) for each in here])
    server.text_document_publish_diagnostics(found)


@server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[">", "(", " ", ",", "="]))
def completion(params: types.CompletionParams) -> types.CompletionList:
    return types.CompletionList(is_incomplete=False, items=complete(*_place(params)))


@server.feature(types.TEXT_DOCUMENT_HOVER)
def on_hover(params: types.HoverParams) -> types.Hover | None:
    text = hover(*_place(params))
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text)) if text is not None else None


@server.feature(types.TEXT_DOCUMENT_DEFINITION)
def on_definition(params: types.DefinitionParams) -> types.Location | None:
    analysis, offset = _place(params)
    span = definition(analysis, offset)
    if span is None:
        return None
    same = span.source is analysis.source
    uri = params.text_document.uri if same else Path(span.source.name).as_uri()
    return types.Location(uri=uri, range=_range(span))


@server.feature(types.TEXT_DOCUMENT_FORMATTING)
def formatting(params: types.DocumentFormattingParams) -> list[types.TextEdit] | None:
    analysis = _analysis(params.text_document.uri)
    text = format_source(analysis.source, Report())
    if text is None or text == analysis.source.text:
        return None
    whole = types.Range(types.Position(0, 0), types.Position(analysis.source.text.count("\n") + 1, 0))
    return [types.TextEdit(range=whole, new_text=text)]
