"""Plans sweeps: every point with its recipe, its cost and its identity, checked before anything trains."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from modgraph.declare import format_briefly
from modgraph.diagnostics import Diagnostic, ModgraphError, Span
from modgraph.elaboration.errors import BadParameter, UnknownParameter
from modgraph.recipes.errors import BadValue
from modgraph.store.run_directory import locate_recipe
from modgraph.study import errors
from modgraph.study.findings import Findings
from modgraph.study.iso import Level
from modgraph.study.origins import find_start, order_sweeps
from modgraph.study.points import (
    LONGEST_NAME,
    Draft,
    draft_points,
    find_mistakes,
    list_drafts,
    locate,
    name_point,
    normalise,
    space_of,
)
from modgraph.study.space import Space
from modgraph.study.specs import Elaborated, Specs
from modgraph.study.sweep import Sweep
from modgraph.training.fit import find_missing_extras, find_missing_files, refuse_unfit
from modgraph.training.recipe import OPTION, Recipe, key_overrides, read_with_spec
from modgraph.training.start.weight_map import read_map

START = "start.run"
FILES = ("sweep.json", "failures.jsonl")  # in the folder of a sweep, so no run has their names


@dataclass(frozen=True)
class Point:
    """One training of a sweep: `start_run(point.spec, point.recipe, point.overrides, out / point.run)`.

    `run` is its folder below that of the sweep, `label` the name of a named point, `values` what was varied, with the
    keys that are `seeds`, and `about` what the sweep file says about it. Points of equal identity are equal trainings.
    `after` is the run whose weights it starts from. `cost` has the counts of its graph, by name.
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
    seeds: tuple[str, ...] = ()
    cost: Mapping[str, int] = field(default_factory=dict, compare=False)


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
        """Plan the points of a trial, one for each seed. Raises `ModgraphError`."""
        findings = Findings()
        found = [*self.planner.plan_drafts(self.sweep, draft_points(self.sweep, values), findings)]
        if mistakes := findings.list_diagnostics("error"):
            raise ModgraphError(mistakes)
        return tuple(found)


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


@dataclass
class Planner:
    """Checks drafts of points and names their runs. `known` has the folders of runs by identity, `taken` the identity
    of each name in lower case, `runs` the run that trains an identity."""

    out: Path
    known: Mapping[str, str]
    specs: Specs
    taken: dict[str, str] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)
    repeats: dict[str, str] = field(default_factory=dict)
    points: dict[str, list[Point]] = field(default_factory=dict)  # by sweep

    def __post_init__(self) -> None:
        self.taken |= {name.lower(): identity for identity, name in self.known.items()} | dict.fromkeys(FILES, "")

    def plan_drafts(self, sweep: Sweep, drafts: Sequence[Draft], findings: Findings) -> Iterator[Point]:
        """Check drafts of a sweep and yield their points; those with mistakes, which `findings` get, are left out."""
        level = None if sweep.iso is None else Level(sweep, self._base(sweep), self.specs)
        for draft in drafts:
            name = name_point(sweep, draft, seeds=False)
            findings.every.setdefault(sweep.name, {})[name] = None
            try:
                start = self._start(sweep, draft)
                found = draft
                if start is not None:
                    found = found.with_settings(**{START: str((self.out / start.run).absolute())})
                if level is not None:
                    found = found.with_settings(**level.adapt(draft.overrides))
                recipe, elaborated, warnings = self._check(sweep, found)
            except ModgraphError as error:
                findings.add([_explain(each, sweep, draft) for each in error.diagnostics], sweep.name, name)
                continue
            findings.add([_explain(each, sweep, draft) for each in warnings], sweep.name, name)
            identity = self.specs.identify(elaborated, recipe, None if start is None else start.identity)
            yield self._point(sweep, found, identity, start, elaborated)

    def _start(self, sweep: Sweep, draft: Draft) -> Point | None:
        """Return the point whose weights a point starts from. Raises `ModgraphError`."""
        if sweep.start is None:
            return None
        found = find_start(sweep, draft, self.points.get(sweep.start, []))
        return replace(found, run=self.repeats.get(found.run, found.run))

    def _base(self, sweep: Sweep) -> Path | Mapping[str, Any]:
        return locate_recipe(sweep.spec) if sweep.recipe is None else sweep.recipe

    def _check(self, sweep: Sweep, draft: Draft) -> tuple[Recipe, Elaborated, Sequence[Diagnostic]]:
        """Read the recipe and the spec of a point, as its training will. Raises `ModgraphError` with every mistake."""
        overrides = key_overrides(draft.overrides)
        recipe, program = read_with_spec(self._base(sweep), sweep.spec, overrides, read_spec=self.specs.load)
        elaborated = self.specs.elaborate(sweep.spec, recipe.model)
        if not draft.is_first:  # checked with the first seed
            return recipe, elaborated, ()
        refuse_unfit(program.ir, recipe)
        if recipe.start is not None and recipe.start.map is not None:
            read_map(recipe.start.map, program.ir)
        missing = [vars(each) for each in find_missing_files(recipe)]
        missing = [each for each in missing if sweep.start is None or each["key"] != START]
        if missing:
            raise ModgraphError(errors.NeedsFile(**each) for each in missing)
        return recipe, elaborated, [*program.warnings, *find_missing_extras(recipe)]

    def _point(self, sweep: Sweep, draft: Draft, identity: str, start: Point | None, elaborated: Elaborated) -> Point:
        """Name the run of a checked draft; one of the same identity repeats an earlier one."""
        run = self._name_run(sweep, draft, identity)
        if identity in self.runs and self.runs[identity] != run:
            self.repeats[run] = self.runs[identity]
        self.runs.setdefault(identity, run)
        about = {**sweep.about.get(draft.label, {})}
        point = Point(
            run=run,
            sweep=sweep.name,
            label=draft.label,
            spec=sweep.spec,
            recipe=self._base(sweep),
            overrides=draft.overrides,
            values=draft.values,
            about=about,
            identity=identity,
            after=None if start is None else start.run,
            seeds=() if sweep.seeds is None else sweep.seeds.keys,
            cost=elaborated.count(None if sweep.iso is None else sweep.iso.lengths),
        )
        self.points.setdefault(sweep.name, []).append(point)
        return point

    def _name_run(self, sweep: Sweep, draft: Draft, identity: str) -> str:
        """Return the folder of a run: the known one of its identity, else a new name."""
        if identity in self.known and identity not in self.runs:
            return self.known[identity]
        name = name_point(sweep, draft)
        if len(name) > LONGEST_NAME:
            digest = hashlib.sha256(repr((draft.label, draft.values)).encode()).hexdigest()
            name = f"{name[: LONGEST_NAME - 9]}-{digest[:8]}"
        name = f"{sweep.name}/{name}" if sweep.name else name
        if name.lower() in self.taken and (self.taken[name.lower()] != identity or identity in self.runs):
            name = f"{name[: LONGEST_NAME - 9]}-{identity[:8]}"
            number = 2
            while name.lower() in self.taken:
                name, number = f"{name.partition('~')[0]}~{number}", number + 1
        self.taken[name.lower()] = identity
        return name


def make_plan(
    sweeps: Sequence[Sweep],
    out: Path,
    tables: Mapping[str, Any] | None = None,
    known: Mapping[str, str] | None = None,
    specs: Specs | None = None,
) -> Plan:
    """Plan sweeps into a folder. `known` has the runs that stand below it: their folders by identity, under which
    equal points are found again. Raises `ModgraphError` with every mistake of every point."""
    findings, planner = Findings(), Planner(out, known or {}, specs or Specs())
    sweeps, searches = [*map(normalise, sweeps)], []
    planned: dict[str, list[Point]] = {}
    broken = set[str]()
    for sweep in order_sweeps(sweeps, findings):
        mistakes = [*find_mistakes(sweep)]
        findings.add(mistakes, sweep.name)
        if mistakes or sweep.start in broken:
            broken.add(sweep.name)
            continue
        before = len(findings.found)
        if sweep.optuna is None:
            planned[sweep.name] = [*planner.plan_drafts(sweep, list_drafts(sweep), findings)]
        else:
            trial = Planner(out, {}, planner.specs, points={**planner.points}, repeats={**planner.repeats})
            list(trial.plan_drafts(sweep, list_drafts(sweep), findings))
            searches.append(Search(sweep, planner))
        if any(each.severity == "error" for each in [*findings.found.values()][before:]):
            broken.add(sweep.name)
    if mistakes := findings.list_diagnostics("error"):
        raise ModgraphError([*findings.list_diagnostics("warning"), *mistakes])
    points = tuple(each for found in planned.values() for each in found)
    warnings = tuple(findings.list_diagnostics("warning"))
    return Plan(out, points, planner.repeats, dict(tables or {}), tuple(searches), warnings)


def identify_run(run: Path, specs: Specs | None = None) -> str:
    """Return the identity of the point that a run's folder is a training of. Raises `ModgraphError`."""
    return (specs or Specs()).identify_run(run)


def _explain(diagnostic: Diagnostic, sweep: Sweep, draft: Draft) -> Diagnostic:
    """Point to the sweep file where it has the value of a mistake, and explain single values of a list."""
    span = _find_place(diagnostic.span, sweep, draft)
    match diagnostic:
        case UnknownParameter():
            return diagnostic.replace(span=locate(sweep, draft.label, vars(diagnostic)["name"]) or span)
        case BadParameter():
            key, wants_list = vars(diagnostic)["name"], vars(diagnostic)["wanted"].startswith("a list")
            span = locate(sweep, draft.label, key) or span
        case BadValue():
            key, wants_list = vars(diagnostic)["key"], vars(diagnostic)["problem"].startswith("must be a list")
        case _:
            key, wants_list = "", False
    tried = sweep.grid.get(key.removeprefix("model."))
    if wants_list and isinstance(tried, tuple):
        given = ", ".join(map(format_briefly, tried))
        return errors.ListIsAlternatives(span=locate(sweep, draft.label, key) or span, key=key, given=given)
    return diagnostic.replace(span=span)


def _find_place(span: Span | None, sweep: Sweep, draft: Draft) -> Span | None:
    """Return the place of an override in the sweep file; any other place as it is."""
    if span is None or span.source.name != OPTION:
        return span
    return locate(sweep, draft.label, span.source.text.partition("=")[0].removeprefix("model.")) or span
