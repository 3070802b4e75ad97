"""The language server protocol, over standard input and output."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from modgraph.diagnostics import Report, Source
from modgraph.elaboration import resolve_path
from modgraph.lsp import convert
from modgraph.lsp.analysis import Analysis, analyse
from modgraph.lsp.fixes import find_fixes
from modgraph.lsp.hints import TOKEN_TYPES, token_types, type_hints
from modgraph.lsp.outline import outline
from modgraph.lsp.project import CannotRename, Project
from modgraph.lsp.queries import complete, definition, hover
from modgraph.lsp.signatures import signature_at
from modgraph.lsp.symbols import Occurrence
from modgraph.syntax import read
from modgraph.syntax.format import format_source
from modgraph.version import VERSION

server = LanguageServer("modgraph", VERSION)
T = TypeVar("T")
REFUSED = -32803  # RequestFailed: the request is valid, and cannot be fulfilled
LEGEND = types.SemanticTokensLegend(token_types=list(TOKEN_TYPES), token_modifiers=["declaration"])
Located = (
    types.CompletionParams
    | types.HoverParams
    | types.DefinitionParams
    | types.ReferenceParams
    | types.RenameParams
    | types.PrepareRenameParams
    | types.SignatureHelpParams
)


def _path_of(uri: str) -> str:
    """The path of a file without links, as imports name it; of an unsaved text its URI."""
    path = to_fs_path(uri) if uri.startswith("file:") else None
    return uri if path is None else str(resolve_path(Path(path)))


def _uri_of(path: str) -> str:
    """The URI by which the editor knows a path."""
    known_uris = (uri for uri in server.workspace.text_documents if _path_of(uri) == path)
    return next(known_uris, None) or Path(path).as_uri()


def _source_of(path: str) -> Source | None:
    """The text of a path: of the editor if it is open there."""
    for uri, document in server.workspace.text_documents.items():
        if _path_of(uri) == path:
            return Source(path, document.source)
    return read(path, Report())


class _Known:
    """What is known of the texts until one of them changes."""

    def __init__(self) -> None:
        self.analyses: dict[str, Analysis] = {}
        self.projects: dict[str, Project] = {}

    def clear(self) -> None:
        self.analyses.clear()
        self.projects.clear()


known = _Known()


def _analysis(uri: str) -> Analysis:
    path = _path_of(uri)
    if path not in known.analyses:
        known.analyses[path] = analyse(_source_of(path) or Source(path, ""))
    return known.analyses[path]


def _project(uri: str) -> Project:
    if uri not in known.projects:
        known.projects[uri] = _read_project(uri)
    return known.projects[uri]


def _read_project(uri: str) -> Project:
    folders = [_path_of(folder.uri) for folder in server.workspace.folders.values()]
    root = server.workspace.root_path
    roots = folders or [root or str(Path(_path_of(uri)).parent)]
    return Project(tuple(Path(each) for each in roots), _source_of)


def _place(params: Located) -> tuple[Analysis, int]:
    analysis = _analysis(params.text_document.uri)
    return analysis, convert.offset_of(analysis.source, params.position)


def _occurrence(params: Located) -> tuple[Project, Occurrence]:
    """The symbol at a place. Raises `JsonRpcException` where none is."""
    project, (analysis, offset) = _project(params.text_document.uri), _place(params)
    found = project.occurrence_at(analysis.source.name, offset)
    if found is None:
        word = analysis.word_at(offset)
        raise JsonRpcException(f'"{word}" is not declared in a spec' if word else "no name at this place", REFUSED)
    return project, found


# ------------------------------------------------------------ while one types


@server.feature(types.TEXT_DOCUMENT_DID_OPEN)
@server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
def publish(params: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams) -> None:
    uri = params.text_document.uri
    known.clear()
    analysis = _analysis(uri)
    here = [each for each in analysis.diagnostics if each.span is None or each.span.source is analysis.source]
    found = types.PublishDiagnosticsParams(uri=uri, diagnostics=[convert.message_of(each) for each in here])
    server.text_document_publish_diagnostics(found)


@server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
@server.feature(types.TEXT_DOCUMENT_DID_SAVE)
@server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
def forget(
    params: types.DidCloseTextDocumentParams | types.DidSaveTextDocumentParams | types.DidChangeWatchedFilesParams,
) -> None:
    known.clear()


@server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[">", "(", " ", ",", "="]))
def completion(params: types.CompletionParams) -> types.CompletionList:
    return types.CompletionList(is_incomplete=False, items=complete(*_place(params)))


@server.feature(types.TEXT_DOCUMENT_SIGNATURE_HELP, types.SignatureHelpOptions(trigger_characters=["(", ",", "="]))
def signature_help(params: types.SignatureHelpParams) -> types.SignatureHelp | None:
    analysis, offset = _place(params)
    found = signature_at(analysis, _project(params.text_document.uri), offset)
    return None if found is None else convert.signature_of(found)


@server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions([types.CodeActionKind.QuickFix]))
def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
    analysis, uri = _analysis(params.text_document.uri), params.text_document.uri
    start, end = (convert.offset_of(analysis.source, each) for each in (params.range.start, params.range.end))
    return [convert.action_of(each, uri) for each in find_fixes(analysis, start, end)]


@server.feature(types.TEXT_DOCUMENT_FORMATTING)
def formatting(params: types.DocumentFormattingParams) -> list[types.TextEdit] | None:
    analysis = _analysis(params.text_document.uri)
    text = format_source(analysis.source, Report())
    if text is None or text == analysis.source.text:
        return None
    whole = types.Range(types.Position(0, 0), types.Position(analysis.source.text.count("\n") + 1, 0))
    return [types.TextEdit(range=whole, new_text=text)]


# ------------------------------------------------------------ what is displayed


@server.feature(types.TEXT_DOCUMENT_HOVER)
def on_hover(params: types.HoverParams) -> types.Hover | None:
    analysis, offset = _place(params)
    occurrences = _project(params.text_document.uri).occurrences(analysis.source.name)
    text = hover(analysis, offset, occurrences)
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text)) if text is not None else None


@server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint]:
    analysis = _analysis(params.text_document.uri)
    start, end = (convert.offset_of(analysis.source, each) for each in (params.range.start, params.range.end))
    return [
        types.InlayHint(convert.position_of(analysis.source, at), text, kind=types.InlayHintKind.Type)
        for at, text in type_hints(analysis, start, end)
    ]


@server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, LEGEND)
def semantic_tokens(params: types.SemanticTokensParams) -> types.SemanticTokens:
    analysis = _analysis(params.text_document.uri)
    occurrences = _project(params.text_document.uri).occurrences(analysis.source.name)
    found = token_types(analysis, occurrences)
    return types.SemanticTokens(data=convert.encode_tokens(analysis.source, found))


@server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
def document_symbol(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    analysis = _analysis(params.text_document.uri)
    if analysis.file is None:
        return []
    occurrences = _project(params.text_document.uri).occurrences(analysis.source.name)
    extents = {each.name: each.span for each in analysis.file.definitions}
    return [convert.document_symbol_of(each) for each in outline(occurrences, extents)]


# ------------------------------------------------------------ symbols across files


@server.feature(types.TEXT_DOCUMENT_DEFINITION)
def on_definition(params: types.DefinitionParams) -> types.Location | None:
    analysis, offset = _place(params)
    project = _project(params.text_document.uri)
    found = project.occurrence_at(analysis.source.name, offset)
    declared = None if found is None else project.find_declaration(found)
    span = declared.span if declared is not None else definition(analysis, offset)
    if span is None:
        return None
    return types.Location(uri=_uri_of(span.source.name), range=convert.range_of(span))


@server.feature(types.TEXT_DOCUMENT_REFERENCES)
def references(params: types.ReferenceParams) -> list[types.Location]:
    analysis, offset = _place(params)
    project = _project(params.text_document.uri)
    found = project.occurrence_at(analysis.source.name, offset)
    every = [] if found is None else project.references(found)
    wanted = (each for each in every if params.context.include_declaration or not each.declares)
    return [types.Location(_uri_of(each.span.source.name), convert.range_of(each.span)) for each in wanted]


@server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
def prepare_rename(params: types.PrepareRenameParams) -> types.PrepareRenamePlaceholder:
    project, found = _occurrence(params)
    _answer(partial(project.check_renamable, found))
    return types.PrepareRenamePlaceholder(range=convert.range_of(found.span), placeholder=found.symbol.name)


@server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
def rename(params: types.RenameParams) -> types.WorkspaceEdit:
    project, found = _occurrence(params)
    edits = _answer(partial(project.rename, found, params.new_name))
    changes = {
        _uri_of(path): [types.TextEdit(convert.range_of(each.span), text) for each, text in every]
        for path, every in edits.items()
    }
    return types.WorkspaceEdit(changes=changes)


def _answer(work: Callable[[], T]) -> T:
    """The result of some work; an editor gets the reason of a refusal as the error of its request."""
    try:
        return work()
    except CannotRename as refusal:
        raise JsonRpcException(str(refusal), REFUSED) from refusal
