"""The specs of a workspace: their symbols, what they import, and renames across all of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from modgraph.diagnostics import Diagnostic, Report, Source
from modgraph.elaboration import Imports, elaborate, resolve_path
from modgraph.lsp.repair import parse_broken
from modgraph.lsp.symbols import GLOBAL, Imported, Kind, Occurrence, find_occurrences
from modgraph.syntax import ast, keywords, parse, read_tokens
from modgraph.syntax.tokens import PlacedToken, tokens

MOST_FILES, MOST_FOLDERS = 1000, 10_000  # of a workspace
PACKAGES = frozenset(("node_modules", "site-packages", "__pycache__"))
Read = Callable[[str], Source | None]  # the text of a path: of the editor, or else of the file


def _list_specs(root: Path) -> Iterator[Path]:
    """The specs below a folder, in order; hidden folders and those of packages are left out."""
    for folder, folders, files in islice(os.walk(root), MOST_FOLDERS):
        folders[:] = sorted(each for each in folders if not each.startswith(".") and each not in PACKAGES)
        yield from (Path(folder) / name for name in sorted(files) if name.endswith(".mod"))


class CannotRename(Exception):
    """A rename is refused; the text says why."""


@dataclass(frozen=True)
class Text:
    """A spec with its tree and tokens; the tree lacks broken lines."""

    source: Source
    file: ast.File | None
    tokens: tuple[PlacedToken, ...]


@dataclass
class Project:
    """The specs below some folders. `read` gives their texts, which are parsed once."""

    roots: tuple[Path, ...]
    read: Read
    _texts: dict[str, Text | None] = field(default_factory=dict)
    _found: dict[str, list[Occurrence]] = field(default_factory=dict)
    _paths: list[str] | None = None

    def text(self, path: str) -> Text | None:
        """The spec at a path; None if there is none."""
        if path not in self._texts:
            source = self.read(path)
            tree = None if source is None else parse_broken(source)
            self._texts[path] = None if source is None else Text(source, tree, tuple(read_tokens(source)))
        return self._texts[path]

    def paths(self) -> list[str]:
        """The specs of the workspace, at most `MOST_FILES`."""
        if self._paths is None:
            found = (path for root in self.roots for path in _list_specs(root))
            self._paths = [str(resolve_path(path)) for path in islice(found, MOST_FILES)]
        return self._paths

    def find_definition(self, path: str, name: str, seen: frozenset[str] = frozenset()) -> Imported | None:
        """The definition that a name at the top of a file refers to, through imports of imports."""
        text = self.text(path)
        if text is None or text.file is None or path in seen:
            return None
        own = next((each for each in text.file.definitions if each.name == name), None)
        if own is not None:
            return Imported(path, own)
        for statement in text.file.imports:
            if name in statement.names:
                return self.find_definition(_path_of_import(path, statement), name, seen | {path})
        return None

    def occurrences(self, path: str) -> list[Occurrence]:
        """Every occurrence of a symbol in a file, in the order of the text."""
        if path not in self._found:
            self._found[path] = self._find_occurrences(path)
        return self._found[path]

    def _find_occurrences(self, path: str) -> list[Occurrence]:
        text = self.text(path)
        if text is None or text.file is None:
            return []
        names = [name for statement in text.file.imports for name in statement.names]
        found = {name: self.find_definition(path, name) for name in names}
        imports = {name: each for name, each in found.items() if each is not None}
        every = dict.fromkeys(find_occurrences(text.file, text.tokens, imports))
        return sorted(every, key=lambda each: each.span.start)

    def occurrence_at(self, path: str, offset: int) -> Occurrence | None:
        """The occurrence that a place touches."""
        touching = (each for each in self.occurrences(path) if each.span.start <= offset <= each.span.end)
        return next(touching, None)

    def references(self, found: Occurrence) -> Iterator[Occurrence]:
        """Every occurrence of the same symbol, in all files that may name it."""
        symbol = found.symbol
        here = found.span.source.name
        local = found.kind not in GLOBAL and found.kind is not Kind.PARAMETER
        paths = [symbol.path] if local else dict.fromkeys((symbol.path, here, *self.paths()))
        for path in paths:
            text = self.text(path)
            if text is not None and symbol.name in text.source.text:
                yield from (each for each in self.occurrences(path) if each.symbol == symbol)

    def find_declaration(self, found: Occurrence) -> Occurrence | None:
        """Where the symbol of an occurrence is declared: last before it, or else first."""
        declared = [each for each in self.references(found) if each.declares]
        before = [each for each in declared if each.span.source is found.span.source]
        before = [each for each in before if each.span.start <= found.span.start]
        return next(iter(before[-1:] or declared[:1]), None)

    def rename(self, found: Occurrence, new: str) -> dict[str, list[tuple[Occurrence, str]]]:
        """The texts to put in the place of each occurrence, by file. Raises `CannotRename`."""
        self.check_renamable(found)
        check_name(new)
        edits: dict[str, list[tuple[Occurrence, str]]] = {}
        for each in self.references(found):
            text = f"{each.symbol.name} = {new}" if each.record else new
            edits.setdefault(each.span.source.name, []).append((each, text))
        for path in edits:
            self._check_free(path, found, new)
        self._check_meaning(edits)
        return edits

    def check_renamable(self, found: Occurrence) -> None:
        """Raises `CannotRename` for names that the data or the axes of other files know."""
        if found.kind is Kind.AXIS:
            raise CannotRename(f'"{found.symbol.name}" names an axis, which strings and data name too')

    def _check_free(self, path: str, found: Occurrence, new: str) -> None:
        """Refuse a name that the same definition, or for a definition the same file, has already."""
        text = self.text(path)
        assert text is not None and text.file is not None, "it has the symbol"
        owner = next((each for each in text.file.definitions if each.name == found.symbol.definition), None)
        for token in text.tokens:
            is_near = owner is None or found.symbol.path != path or owner.span.holds(token.span)
            if token == new and is_near:
                place = Path(path).name
                line, _ = text.source.position(token.span.start)
                raise CannotRename(f'the name "{new}" is taken: {place}:{line}')

    def _check_meaning(self, edits: dict[str, list[tuple[Occurrence, str]]]) -> None:
        """Refuse a rename after which a spec has mistakes that it did not have."""
        sources = {path: text.source for path in edits if (text := self.text(path)) is not None}
        renamed = {path: Source(path, apply_edits(sources[path].text, edits[path])) for path in edits}
        for path, source in renamed.items():
            before = {each.code for each in _mistakes(sources[path], sources)}
            new = [each for each in _mistakes(source, renamed) if each.code not in before]
            if new:
                raise CannotRename(f"{new[0].text()} ({new[0].code})")


def _mistakes(source: Source, others: dict[str, Source]) -> list[Diagnostic]:
    """The mistakes of a spec, which imports the given texts in place of files."""
    report = Report()
    folder = resolve_path(Path(source.name).parent)
    texts = {os.path.relpath(path, folder).replace(os.sep, "/"): each.text for path, each in others.items()}
    file = parse(source, report)
    if file is not None and file.models:
        elaborate(file, {}, report, Imports(folder, report, texts))
    return report.errors


def apply_edits(text: str, changes: list[tuple[Occurrence, str]]) -> str:
    """A text with new names."""
    for each, new in sorted(changes, key=lambda change: -change[0].span.start):
        text = text[: each.span.start] + new + text[each.span.end :]
    return text


def check_name(new: str) -> None:
    """Raises `CannotRename` for what cannot be a name."""
    report = Report()
    found = [*tokens(Source("<name>", new), report)]
    if new in set(keywords()):
        raise CannotRename(f'"{new}" is a word of the language')
    if len(found) != 1 or report.errors or not (new.isidentifier() and new.isascii()) or found[0] != new:
        raise CannotRename(f'"{new}" must be a name: letters, digits and _, not a digit first')


def _path_of_import(path: str, statement: ast.Import) -> str:
    return str(resolve_path(Path(path).parent / statement.path))
