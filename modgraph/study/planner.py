"""Turns drafts of points into checked points with names, costs and identities."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from modgraph.diagnostics import ModgraphError
from modgraph.study.checks import START, check_draft, explain, locate_base
from modgraph.study.findings import Findings
from modgraph.study.iso import Level
from modgraph.study.origins import Shapes, find_start, find_unlike_weights, list_shapes
from modgraph.study.point import Point
from modgraph.study.points import LONGEST_NAME, Draft, name_point
from modgraph.study.specs import Elaborated, Specs
from modgraph.study.sweep import Sweep
from modgraph.training.recipe import Recipe

FILES = ("sweep.json", "failures.jsonl")  # in the folder of a sweep, so no run has their names


@dataclass
class Names:
    """Names of runs. `known` has the folders of existing runs by identity, `taken` the identity of each name in lower
    case, `runs` the run that trains an identity, `repeats` that run by the names of points that repeat it."""

    known: Mapping[str, str] = field(default_factory=dict)
    taken: dict[str, str] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)
    repeats: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.taken |= {name.lower(): identity for identity, name in self.known.items()} | dict.fromkeys(FILES, "")

    def add(self, sweep: Sweep, draft: Draft, identity: str) -> str:
        """Name the run of a point: the known one of its identity, else by its values."""
        first = identity not in self.runs
        run = self.known[identity] if first and identity in self.known else self._find_free(sweep, draft, identity)
        self.taken[run.lower()] = identity
        if first:
            self.runs[identity] = run
        else:
            self.repeats[run] = self.runs[identity]
        return run

    def _find_free(self, sweep: Sweep, draft: Draft, identity: str) -> str:
        name = name_point(sweep, draft)
        if len(name) > LONGEST_NAME:
            digest = hashlib.sha256(repr((draft.label, draft.values)).encode()).hexdigest()
            name = f"{name[: LONGEST_NAME - 9]}-{digest[:8]}"
        name = f"{sweep.name}/{name}" if sweep.name else name
        if name.lower() not in self.taken:
            return name
        name, number = f"{name[: LONGEST_NAME - 9]}-{identity[:8]}", 2
        while name.lower() in self.taken:
            name, number = f"{name.partition('~')[0]}~{number}", number + 1
        return name


@dataclass
class Planner:
    """Checks drafts of the points below a folder, each sweep after the one that it starts from."""

    out: Path
    specs: Specs
    names: Names
    points: dict[str, list[Point]] = field(default_factory=dict)  # by sweep
    shapes: dict[str, Shapes | None] = field(default_factory=dict)  # of the weights of each run
    levels: dict[str, Level] = field(default_factory=dict)  # by sweep

    def copy(self) -> Planner:
        """Return a planner with the same points, whose further ones this one will not have."""
        return Planner(self.out, self.specs, Names(), {**self.points}, {**self.shapes}, self.levels)

    def plan_drafts(self, sweep: Sweep, drafts: Sequence[Draft], findings: Findings) -> Iterator[Point]:
        """Check drafts of a sweep and yield their points; those with mistakes, which `findings` get, are left out."""
        for draft in drafts:
            name = name_point(sweep, draft, seeds=False)
            findings.every.setdefault(sweep.name, {})[name] = None
            try:
                start = self._find_start(sweep, draft)
                found = self._complete(sweep, draft, start)
                recipe, elaborated, warnings = check_draft(sweep, found, self.specs)
                self._check_weights(sweep, found, recipe, elaborated, start)
            except ModgraphError as error:
                findings.add([explain(each, sweep, draft) for each in error.diagnostics], sweep.name, name)
                continue
            findings.add([explain(each, sweep, draft) for each in warnings], sweep.name, name)
            identity = self.specs.identify(elaborated, recipe, None if start is None else start.identity)
            point = make_point(sweep, found, self.names.add(sweep, found, identity), identity, start, elaborated)
            may_grow = not recipe.train.algorithm.one_phase
            self.shapes[point.run] = None if may_grow or not draft.is_first else list_shapes(elaborated.program.ir)
            self.points.setdefault(sweep.name, []).append(point)
            yield point

    def _find_start(self, sweep: Sweep, draft: Draft) -> Point | None:
        """Return the point whose weights a point starts from. Raises `ModgraphError`."""
        if sweep.start is None:
            return None
        found = find_start(sweep, draft, self.points.get(sweep.start, []))
        return replace(found, run=self.names.repeats.get(found.run, found.run))

    def _complete(self, sweep: Sweep, draft: Draft, start: Point | None) -> Draft:
        """Return a draft with the run that it starts from and the value that gives it the sweep's cost. Raises
        `ModgraphError`."""
        if start is not None:
            draft = draft.with_settings(**{START: str((self.out / start.run).absolute())})
        if sweep.iso is None:
            return draft
        level = self.levels.setdefault(sweep.name, Level(sweep, locate_base(sweep), self.specs))
        return draft.with_settings(**level.adapt(draft.overrides))

    def _check_weights(
        self, sweep: Sweep, draft: Draft, recipe: Recipe, elaborated: Elaborated, start: Point | None
    ) -> None:
        """Raises `ModgraphError` where the weights of the run to start from do not fit."""
        shapes = None if start is None else self.shapes[start.run]
        if shapes is not None and draft.is_first:
            unlike = [*find_unlike_weights(elaborated.program.ir, recipe, shapes)]
            if unlike:
                raise ModgraphError(each.replace(span=sweep.places.get("start")) for each in unlike)


def make_point(
    sweep: Sweep, draft: Draft, run: str, identity: str, start: Point | None, elaborated: Elaborated
) -> Point:
    """Make the point of a checked draft."""
    return Point(
        run=run,
        sweep=sweep.name,
        label=draft.label,
        spec=sweep.spec,
        recipe=locate_base(sweep),
        overrides=draft.overrides,
        values=draft.values,
        about=sweep.about.get(draft.label, {}),
        identity=identity,
        after=None if start is None else start.run,
        seeds=() if sweep.seeds is None else sweep.seeds.keys,
        cost=elaborated.count(None if sweep.iso is None else sweep.iso.lengths),
    )
