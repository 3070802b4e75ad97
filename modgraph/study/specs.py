"""Reads the spec of each point once, and identifies equal trainings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from modgraph.diagnostics import ModgraphError
from modgraph.files import exists
from modgraph.program import Program, load
from modgraph.store.run_directory import RunDirectory
from modgraph.training.recipe import Recipe, read_recipe

MOST_PROGRAMS = 256  # that are remembered


@dataclass(frozen=True)
class Elaborated:
    """A program, its hash and its counts, computed when they are first needed."""

    program: Program
    _counts: dict[str, Mapping[str, int]] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def hash(self) -> str:
        """The digest of its graph."""
        return self.program.ir.hash()

    def count(self, lengths: Mapping[str, int] | None = None) -> Mapping[str, int]:
        """Return its counts by name; axes of any length have the given ones, or 1. Raises `ModgraphError`."""
        key = repr(sorted((lengths or {}).items()))
        if key not in self._counts:
            self._counts[key] = self.program.cost(**(lengths or {})).counts
        return self._counts[key]


@dataclass(frozen=True)
class Specs:
    """Programs by spec and parameters, and the mistakes of those that have some; the last ones are remembered, so that
    each is elaborated once."""

    found: dict[tuple[str, str], Elaborated | ModgraphError] = field(default_factory=dict)
    runs: dict[Path, str] = field(default_factory=dict)  # identities

    def elaborate(self, spec: Path, parameters: Mapping[str, Any], text: str = "") -> Elaborated:
        """Elaborate a spec, or look it up; a spec of the same `text` is the same. Raises `ModgraphError`."""
        key = text or str(spec), repr(sorted(parameters.items()))
        if key not in self.found:
            try:
                self.found[key] = Elaborated(load(spec, **parameters))
            except ModgraphError as error:
                self.found[key] = error
            if len(self.found) > MOST_PROGRAMS:
                del self.found[next(iter(self.found))]
        result = self.found[key]
        if isinstance(result, ModgraphError):
            raise ModgraphError(result.diagnostics)
        return result

    def load(self, spec: str | Path, /, **parameters: Any) -> Program:
        """Read a program as `modgraph.load` does. Raises `ModgraphError`."""
        return self.elaborate(Path(spec), parameters).program

    def identify(self, elaborated: Elaborated, recipe: Recipe, start: str | None = None) -> str:
        """Return the identity of a training: a digest of its graph and of every key of its recipe. In the place of the
        run that it starts from stands that run's identity, `start` where it is known."""
        record = recipe.record()
        del record["model"]  # the graph has what the parameters decide
        if recipe.start is not None and recipe.start.run is not None:
            record["start"]["run"] = start or self.identify_start(Path(recipe.start.run))
        return _digest(elaborated.hash, record)

    def identify_start(self, run: Path) -> str:
        """Return the identity of a run from which another starts; its path where there is none."""
        return self.identify_run(run) if exists(RunDirectory(run).record) else str(run)

    def identify_run(self, run: Path, known: str = "") -> str:
        """Return the identity of the training in a run's folder; the `known` one where the run that it started from
        has moved. Raises `ModgraphError`, also for a damaged run."""
        if run not in self.runs:
            directory = RunDirectory(run)
            directory.check()
            recipe = read_recipe(directory.recipe)
            start = None if recipe.start is None else recipe.start.run
            if known and start is not None and not exists(RunDirectory(Path(start)).record):
                return known
            text = f"{directory.spec.read_text()}\n{sorted(directory.read_imports().items())}"
            found = self.identify(self.elaborate(directory.spec, recipe.model, text), recipe)
            is_migrated = recipe.start is None and exists(directory.start)  # begun with the weights of another
            self.runs[run] = _digest(found, directory.parse_file(directory.start)) if is_migrated else found
        return self.runs[run]


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps([*map(_canonical, parts)]).encode()).hexdigest()


def _canonical(value: Any) -> Any:
    """Return a value whose JSON is equal for equal values: 1.0 as 1."""
    match value:
        case dict():
            return {key: _canonical(each) for key, each in value.items()}
        case list() | tuple():
            return [*map(_canonical, value)]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value
