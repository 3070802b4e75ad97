"""What editors ask, as the Language Server Protocol says it: JSON in, JSON out, whatever carries the messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from modgraph.diagnostics import Report, Source
from modgraph.elaboration import resolve_path
from modgraph.lsp import convert, places
from modgraph.lsp.analysis import Analysis, analyse
from modgraph.lsp.fixes import find_fixes
from modgraph.lsp.hints import token_types, type_hints
from modgraph.lsp.methods import FEATURES, Refused
from modgraph.lsp.outline import outline
from modgraph.lsp.project import CannotRename, Project
from modgraph.lsp.queries import complete, definition, hover
from modgraph.lsp.signatures import signature_at
from modgraph.lsp.symbols import Occurrence
from modgraph.syntax import read
from modgraph.syntax.format import format_source

Params = Mapping[str, Any]
T = TypeVar("T")


class Texts(Protocol):
    """The texts that an editor has open, by URI, and the folders of its workspace."""

    def texts(self) -> Mapping[str, str]: ...

    def roots(self) -> Iterable[str]: ...


def path_of(uri: str) -> str:
    """The path of a file without links, as imports name it; of an unsaved text its URI."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return uri
    from urllib.request import url2pathname

    return str(resolve_path(Path(url2pathname(parts.path))))


class Features:
    """Answers for the texts of an editor. What is known of them is forgotten by `forget`, after each change."""

    def __init__(self, editor: Texts) -> None:
        self.editor = editor
        self._analyses: dict[str, Analysis] = {}
        self._projects: dict[str, Project] = {}

    def forget(self) -> None:
        self._analyses.clear()
        self._projects.clear()

    def answer(self, method: str, params: Params) -> Any:
        """The result of a request of `FEATURES`. Raises `Refused`."""
        return getattr(self, FEATURES[method].answer)(params)

    def analysis(self, uri: str) -> Analysis:
        path = path_of(uri)
        if path not in self._analyses:
            self._analyses[path] = analyse(self._source_of(path) or Source(path, ""))
        return self._analyses[path]

    def diagnostics(self, uri: str) -> list[dict[str, Any]]:
        """The messages of a text itself."""
        analysis = self.analysis(uri)
        here = (each for each in analysis.diagnostics if each.span is None or each.span.source is analysis.source)
        return [places.message_of(each) for each in here]

    # ------------------------------------------------------------ while one types

    def completion(self, params: Params) -> dict[str, Any]:
        return {"isIncomplete": False, "items": [*map(convert.item_of, complete(*self._place(params)))]}

    def signature_help(self, params: Params) -> dict[str, Any] | None:
        analysis, offset = self._place(params)
        found = signature_at(analysis, self._project(params), offset)
        return None if found is None else convert.signature_of(found)

    def code_action(self, params: Params) -> list[dict[str, Any]]:
        analysis, uri = self.analysis(_uri(params)), _uri(params)
        start, end = self._range(params)
        return [convert.action_of(each, uri) for each in find_fixes(analysis, start, end)]

    def formatting(self, params: Params) -> list[dict[str, Any]] | None:
        source = self.analysis(_uri(params)).source
        text = format_source(source, Report())
        if text is None or text == source.text:
            return None
        end = places.position_of(source, len(source.text))
        return [{"range": {"start": places.START, "end": end}, "newText": text}]

    # ------------------------------------------------------------ what is displayed

    def hover(self, params: Params) -> dict[str, Any] | None:
        analysis, offset = self._place(params)
        text = hover(analysis, offset, self._occurrences(params))
        return None if text is None else {"contents": {"kind": "markdown", "value": text}}

    def inlay_hint(self, params: Params) -> list[dict[str, Any]]:
        analysis = self.analysis(_uri(params))
        hints = type_hints(analysis, *self._range(params))
        return [{"position": places.position_of(analysis.source, at), "label": text, "kind": 1} for at, text in hints]

    def semantic_tokens(self, params: Params) -> dict[str, Any]:
        analysis = self.analysis(_uri(params))
        return {"data": convert.encode_tokens(analysis.source, token_types(analysis, self._occurrences(params)))}

    def document_symbol(self, params: Params) -> list[dict[str, Any]]:
        analysis = self.analysis(_uri(params))
        if analysis.file is None:
            return []
        extents = {each.name: each.span for each in analysis.file.definitions}
        return [convert.document_symbol_of(each) for each in outline(self._occurrences(params), extents)]

    # ------------------------------------------------------------ symbols across files

    def definition(self, params: Params) -> dict[str, Any] | None:
        analysis, offset = self._place(params)
        project = self._project(params)
        found = project.occurrence_at(analysis.source.name, offset)
        declared = None if found is None else project.find_declaration(found)
        span = declared.span if declared is not None else definition(analysis, offset)
        if span is None:
            return None
        return {"uri": self._uri_of(span.source.name), "range": places.range_of(span)}

    def references(self, params: Params) -> list[dict[str, Any]]:
        analysis, offset = self._place(params)
        project = self._project(params)
        found = project.occurrence_at(analysis.source.name, offset)
        every = [] if found is None else project.references(found)
        wanted = (each for each in every if params["context"]["includeDeclaration"] or not each.declares)
        return [{"uri": self._uri_of(each.span.source.name), "range": places.range_of(each.span)} for each in wanted]

    def prepare_rename(self, params: Params) -> dict[str, Any]:
        project, found = self._occurrence(params)
        _answer(partial(project.check_renamable, found))
        return {"range": places.range_of(found.span), "placeholder": found.symbol.name}

    def rename(self, params: Params) -> dict[str, Any]:
        project, found = self._occurrence(params)
        edits = _answer(partial(project.rename, found, params["newName"]))
        changes = {
            self._uri_of(path): [{"range": places.range_of(each.span), "newText": text} for each, text in every]
            for path, every in edits.items()
        }
        return {"changes": changes}

    # ------------------------------------------------------------ texts and places

    def _source_of(self, path: str) -> Source | None:
        """The text of a path: of the editor if it is open there."""
        for uri, text in self.editor.texts().items():
            if path_of(uri) == path:
                return Source(path, text)
        return read(path, Report())

    def _uri_of(self, path: str) -> str:
        """The URI by which the editor knows a path."""
        known = (uri for uri in self.editor.texts() if path_of(uri) == path)
        return next(known, None) or Path(path).as_uri()

    def _project(self, params: Params) -> Project:
        uri = _uri(params)
        if uri not in self._projects:
            roots = [*self.editor.roots()] or [str(Path(path_of(uri)).parent)]
            self._projects[uri] = Project(tuple(map(Path, roots)), self._source_of)
        return self._projects[uri]

    def _occurrences(self, params: Params) -> list[Occurrence]:
        return self._project(params).occurrences(path_of(_uri(params)))

    def _place(self, params: Params) -> tuple[Analysis, int]:
        analysis = self.analysis(_uri(params))
        return analysis, places.offset_of(analysis.source, params["position"])

    def _range(self, params: Params) -> tuple[int, int]:
        source, range = self.analysis(_uri(params)).source, params["range"]
        return places.offset_of(source, range["start"]), places.offset_of(source, range["end"])

    def _occurrence(self, params: Params) -> tuple[Project, Occurrence]:
        """The symbol at a place. Raises `Refused` where none is."""
        project, (analysis, offset) = self._project(params), self._place(params)
        found = project.occurrence_at(analysis.source.name, offset)
        if found is None:
            word = analysis.word_at(offset)
            raise Refused(f'"{word}" is not declared in a spec' if word else "no name at this place")
        return project, found


def _uri(params: Params) -> str:
    return str(params["textDocument"]["uri"])


def _answer(work: Callable[[], T]) -> T:
    """The result of some work. Raises `Refused` for a rename that is refused."""
    try:
        return work()
    except CannotRename as refusal:
        raise Refused(str(refusal)) from refusal
