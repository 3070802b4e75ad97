"""Plans sweeps: every point with its recipe, its cost and its identity, checked before anything trains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.study.findings import Findings
from modgraph.study.origins import order_sweeps
from modgraph.study.planner import Names, Planner
from modgraph.study.point import Point
from modgraph.study.points import draft_points, find_aliases, find_mistakes, list_drafts, normalise, space_of
from modgraph.study.space import Space
from modgraph.study.specs import Specs
from modgraph.study.sweep import Sweep


@dataclass(frozen=True)
class Search:
    """Points that an adaptive search proposes, by values of the keys of `space`; its key `point` has the names of
    named points."""

    sweep: Sweep
    planner: Planner = field(repr=False, compare=False)

    @property
    def space(self) -> Space:
        """What the search tries of each key."""
        return space_of(self.sweep)

    def propose(self, values: Mapping[str, Any]) -> tuple[Point, ...]:
        """Plan the points of a trial, one for each seed; one that is planned already has the same run. Raises
        `ModgraphError`."""
        findings, names = Findings(), self.planner.names
        found = [*self.planner.plan_drafts(self.sweep, draft_points(self.sweep, values), findings)]
        if mistakes := findings.list_diagnostics("error"):
            raise ModgraphError(mistakes)
        return tuple(replace(each, run=names.repeats.get(each.run, each.run)) for each in found)


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
    specs: Specs | None = None,
) -> Plan:
    """Plan sweeps into a folder. `known` has the runs that stand below it: their folders by identity, under which
    equal points are found again. Raises `ModgraphError` with every mistake of every point."""
    findings, planner = Findings(), Planner(out, specs or Specs(), Names(known or {}))
    points, searches = list[Point](), list[Search]()
    for sweep in order_sweeps(sweeps, findings):
        findings.add(find_aliases(sweep), sweep.name)
        sweep = normalise(sweep)
        findings.add(find_mistakes(sweep), sweep.name)
        if findings.has_mistake(sweep.name) or findings.has_mistake(sweep.start):
            findings.skipped.add(sweep.name)
        elif sweep.optuna is None:
            points += planner.plan_drafts(sweep, list_drafts(sweep), findings)
        else:
            list(planner.copy().plan_drafts(sweep, list_drafts(sweep), findings))
            searches.append(Search(sweep, planner))
    warnings = findings.list_diagnostics("warning")
    if mistakes := findings.list_diagnostics("error"):
        raise ModgraphError([*warnings, *mistakes])
    return Plan(out, tuple(points), planner.names.repeats, dict(tables or {}), tuple(searches), tuple(warnings))


def identify_run(run: Path, specs: Specs | None = None, known: str = "") -> str:
    """Return the identity of the point that a run's folder is a training of; the `known` one where the run that it
    started from has moved. Raises `ModgraphError`."""
    return (specs or Specs()).identify_run(run, known)
