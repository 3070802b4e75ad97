"""Reads the definitions of a file and its imports, copies them for a run, and finds built-in routers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain, count
from pathlib import Path, PurePosixPath
from typing import Any

from modgraph.declare import format_value
from modgraph.diagnostics import Report, Source, did_you_mean
from modgraph.elaboration import errors
from modgraph.elaboration.entities import POISON, BlockEntity
from modgraph.elaboration.scope import Scope
from modgraph.files import exists
from modgraph.prelude import Written, blocks, routers
from modgraph.syntax import ast, parse, read
from modgraph.syntax.errors import UnreadableFile

DEEPEST_IMPORT = 50
SPEC, RECORD, KEPT = "spec.mod", "run.json", "imports.json"  # files of a run: its spec, its record, the imported texts


def resolve_path(path: Path) -> Path:
    """Resolve the links of a path; keep the path where that fails, since reading it reports the reason."""
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):  # RuntimeError for links in a circle
        return path.absolute()


class Imports:
    """Reads each imported file once and reports files outside `root`, the folder of the spec.

    Texts in `kept`, by their paths from the root, replace files. `files` holds all that were read.
    """

    def __init__(self, root: Path, report: Report, kept: Mapping[str, str] | None = None) -> None:
        self.root = resolve_path(root)
        self.report = report
        self.kept = dict(kept or {})
        self.files: dict[Path, tuple[Source, ast.File]] = {}
        self.scopes: dict[Path, Scope | None] = {}  # None for an unreadable file
        self.reading: list[Path] = []

    @classmethod
    def from_spec(cls, spec: Path, report: Report) -> Imports:
        """Create the imports of a spec from its folder; for the spec of a run, from the texts that the run keeps."""
        folder, kept = spec.parent, dict[str, str]()
        if spec.name == SPEC and exists(folder / RECORD) and exists(folder / KEPT):
            source = read(folder / KEPT, report)
            try:
                kept = parse_kept_texts(source.text) if source is not None else {}
            except ValueError as error:
                way_out = "a run cannot be changed: copy its spec.mod elsewhere, with the files that it imports"
                report.add(UnreadableFile(path=str(folder / KEPT), reason=str(error), way_out=way_out))
        return cls(folder, report, kept)

    def read_definitions(self, file: ast.File, path: Path) -> Scope:
        """Return a scope with the definitions that a file contains and imports."""
        scope = Scope(outer=Scope(names=BuiltInBlocks()))
        self.reading.append(resolve_path(path))
        for statement in file.imports:
            self._import(statement, path, scope)
        _declare_definitions(file, scope, self.report)
        self.scopes[self.reading.pop()] = scope
        return scope

    def _import(self, statement: ast.Import, importer: Path, scope: Scope) -> None:
        there, span = self._read_import(statement, importer), statement.span
        for name in statement.names:
            theirs = [] if there is None else [(scope.routers, there.routers), (scope.names, there.names)]
            found = [(own, names[name]) for own, names in theirs if name in names]
            if there is not None and not found:
                suggestion = did_you_mean(name, [*there.names, *there.routers], "it has: {known}")
                self.report.add(errors.NotInThatFile(span=span, name=name, path=statement.path, suggestion=suggestion))
            for own, value in found or [(scope.names, POISON)]:
                if name in own:
                    self.report.add(errors.DuplicateName(span=span, name=name))
                own[name] = value

    def _read_import(self, statement: ast.Import, importer: Path) -> Scope | None:
        """Return the definitions of an imported file, read once; None after a reported problem."""
        path, span = resolve_path(importer.parent / statement.path), statement.span
        if path in self.reading:
            self.report.add(errors.CircularImport(span=span, path=statement.path))
            return None
        if path in self.scopes:
            return self.scopes[path]
        if len(self.reading) > DEEPEST_IMPORT:
            self.report.add(errors.TooLarge(span=span, what="imports are nested too deep", limit=DEEPEST_IMPORT))
            return None
        if not path.is_relative_to(self.root):
            self.report.add(errors.OutsideProject(span=span, path=str(path)))
        name = Path(os.path.relpath(path, self.root)).as_posix()
        kept = self.kept.get(name)
        source = read(path, self.report, span, name) if kept is None else Source(name, kept, name)
        file = parse(source, self.report) if source is not None else None
        if file is None:
            self.scopes[path] = None
            return None
        self.files[path] = (file.span.source, file)
        return self.read_definitions(file, path)


def parse_kept_texts(text: str) -> dict[str, str]:
    """Parse the texts of imported files that a run keeps, by their paths. Raises `ValueError`."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError("it is damaged") from error
    if not (isinstance(found, dict) and all(isinstance(each, str) for each in found.values())):
        raise ValueError("it is damaged")
    return found


def _declare_definitions(file: ast.File, scope: Scope, report: Report) -> None:
    for defined, names in ((file.blocks, scope.names), (file.routers, scope.routers)):
        for each in defined:
            if each.name in names:
                report.add(errors.DuplicateName(span=each.name_span, name=each.name))
            names[each.name] = BlockEntity(each, scope)


@cache
def find_prelude_router(name: str) -> BlockEntity | None:
    """Find the definition of a built-in router, or None."""
    return _read_prelude(routers()[name]) if name in routers() else None


class BuiltInBlocks(dict[str, Any]):
    """The names of a scope around all files: a built-in block is parsed when it is asked for."""

    def __contains__(self, name: object) -> bool:
        return name in blocks()

    def __missing__(self, name: str) -> BlockEntity:
        return find_prelude_block(name)


@cache
def find_prelude_block(name: str) -> BlockEntity:
    """Find the definition of a built-in block. Raises `KeyError`."""
    return _read_prelude(blocks()[name])


def find_prelude_definition(name: str) -> BlockEntity | None:
    """Find the definition of a built-in router or block, or None."""
    return find_prelude_block(name) if name in blocks() else find_prelude_router(name)


def _read_prelude(written: Written) -> BlockEntity:
    report, scope = Report(), Scope()
    file = parse(written.source, report)
    assert file is not None, f"{written.source.name}: {report.diagnostics}"
    _declare_definitions(file, scope, report)
    found: BlockEntity = (scope.routers if written.keyword == "router" else scope.names)[written.name]
    return found


ELSEWHERE = "imports"  # the folder for copies of files outside the folder of the spec


@dataclass(frozen=True)
class Standalone:
    """The text of a spec, and the texts of all imported files by their paths from its folder."""

    text: str
    imports: Mapping[str, str]

    @classmethod
    def from_file(cls, file: ast.File, imports: Imports) -> Standalone:
        """Collect a file and its imports.

        Files from outside its folder move into it, and import paths change accordingly.
        """
        places: dict[Path, str] = {}  # the new path of each file, from the spec's folder
        for path in sorted(imports.files, key=lambda path: not path.is_relative_to(imports.root)):
            if path.is_relative_to(imports.root):
                places[path] = path.relative_to(imports.root).as_posix()
            else:
                names = (f"{ELSEWHERE}/{path.stem}{number}{path.suffix}" for number in chain([""], count(2)))
                places[path] = next(name for name in names if name not in places.values())
        spec = Path(file.span.source.name)
        texts = {place: _move(*imports.files[path], path, place, places) for path, place in places.items()}
        return cls(_move(file.span.source, file, spec, spec.name, places), texts)


def read_standalone(file: ast.File, report: Report) -> Standalone:
    """Read a file with everything that it imports; report unreadable files."""
    path = Path(file.span.source.name)
    imports = Imports.from_spec(path, report)
    imports.read_definitions(file, path)
    return Standalone.from_file(file, imports)


def _move(source: Source, file: ast.File, path: Path, place: str, places: Mapping[Path, str]) -> str:
    """Rewrite the import paths in the text of a file that moves from a path to a place."""
    text, folder = source.text, PurePosixPath(place).parent
    for statement in reversed(file.imports):
        there = places.get(resolve_path(path.parent / statement.path))
        if there is not None and os.path.normpath(folder / statement.path) != os.path.normpath(there):
            span = statement.path_span
            text = f"{text[: span.start]}{format_value(os.path.relpath(there, folder))}{text[span.end :]}"
    return text
