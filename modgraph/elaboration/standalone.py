"""A spec and the files that it imports, as texts that need no file outside their folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path, PurePosixPath

from modgraph.declare import shown_value
from modgraph.diagnostics import Report, Source
from modgraph.elaboration.imports import Imports, resolved
from modgraph.syntax import ast

ELSEWHERE = "imports"  # the folder for copies of files that lie outside that of the spec


@dataclass(frozen=True)
class Standalone:
    """A spec's text, and the texts of all files that it imports, by their paths from its folder."""

    text: str
    imports: Mapping[str, str]

    @classmethod
    def of(cls, file: ast.File, imports: Imports) -> Standalone:
        """A file whose imports were read. Files outside its folder move into it, and the imports' paths with them."""
        places = _places(imports)
        spec = Path(file.span.source.name)
        texts = {place: _move(*imports.files[path], path, place, places) for path, place in places.items()}
        return cls(_move(file.span.source, file, spec, spec.name, places), texts)


def read_standalone(file: ast.File, report: Report) -> Standalone:
    """A file with everything that it imports. Reports files that cannot be read."""
    path = Path(file.span.source.name)
    imports = Imports.of_spec(path, report)
    imports.scope_of(file, path)
    return Standalone.of(file, imports)


def _places(imports: Imports) -> dict[Path, str]:
    """The new path of each file from the spec's folder: its present one, or one below `ELSEWHERE`."""
    within = [path for path in imports.files if path.is_relative_to(imports.root)]
    places = {path: path.relative_to(imports.root).as_posix() for path in within}
    for path in imports.files:
        if path not in places:
            names = (f"{ELSEWHERE}/{path.stem}{number}{path.suffix}" for number in chain([""], count(2)))
            places[path] = next(name for name in names if name not in places.values())
    return places


def _move(source: Source, file: ast.File, path: Path, place: str, places: Mapping[Path, str]) -> str:
    """The text of a file that moves from a path to a place, with the paths of its imports from there."""
    text, folder = source.text, PurePosixPath(place).parent
    for statement in reversed(file.imports):
        there = places.get(resolved(path.parent / statement.path))
        if there is not None and os.path.normpath(folder / statement.path) != os.path.normpath(there):
            span = statement.path_span
            text = f"{text[: span.start]}{shown_value(os.path.relpath(there, folder))}{text[span.end :]}"
    return text
