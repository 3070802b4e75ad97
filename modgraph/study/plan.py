"""Plans sweeps: every point with its recipe, its cost and its identity, checked before anything trains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from modgraph.diagnostics import Diagnostic
from modgraph.study.sweep import Sweep


@dataclass(frozen=True)
class Point:
    """One training of a sweep: `start_run(point.spec, point.recipe, point.overrides, out / point.run)`.

    `run` is its folder below that of the sweep, `label` the name of a named point, `values` what was varied, seeds
    included, and `about` what the sweep file says about it. Points of equal identity are equal trainings. `after` is
    the run whose weights it starts from. `cost` has the counts of its graph, by name.
    """

    run: str
    sweep: str
    label: str
    spec: Path
    recipe: Path | Mapping[str, Any]
    overrides: Mapping[str, Any]
    values: Mapping[str, Any]
    about: Mapping[str, Any]
    identity: str
    after: str | None = None
    cost: Mapping[str, int] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Search:
    """Points that an adaptive search proposes: `propose(values)` gives the points of some values, one for each seed."""

    sweep: Sweep
    out: Path

    def propose(self, values: Mapping[str, Any]) -> tuple[Point, ...]:
        """Plan the points of a trial, by the keys of `sweep.grid` (and `point`, a label, where points are named).
        Raises `ModgraphError`."""
        raise NotImplementedError


@dataclass(frozen=True)
class Plan:
    """The points of some sweeps, in the order in which they train. `repeats` has the run that a point repeats: only
    that one trains. `searches` propose further points."""

    out: Path
    points: tuple[Point, ...] = ()
    repeats: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, Any] = field(default_factory=dict)
    searches: tuple[Search, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def trained(self) -> tuple[Point, ...]:
        """The points that train: all but those that repeat another."""
        return tuple(each for each in self.points if each.run not in self.repeats)


def make_plan(
    sweeps: Sequence[Sweep],
    out: Path,
    tables: Mapping[str, Any] | None = None,
    known: Mapping[str, str] | None = None,
) -> Plan:
    """Plan sweeps into a folder. `known` has the runs that stand below it: their folders by identity, under
    which equal points are found again. Raises `ModgraphError` with every mistake of every point."""
    raise NotImplementedError


def identify_run(run: Path) -> str:
    """Return the identity of the point that a run's folder is a training of. Raises `ModgraphError`."""
    raise NotImplementedError
