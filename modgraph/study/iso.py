"""Gives the points of a sweep the same cost, by a whole-number parameter of the spec."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from modgraph.diagnostics import ModgraphError, Report, did_you_mean
from modgraph.program import load
from modgraph.study import errors
from modgraph.study.specs import Specs
from modgraph.study.sweep import Iso, Sweep
from modgraph.training.sections import parameters_in, read_mapping, read_recipe_tree

TOLERANCE = 0.02
WIDEST = 2**24
PROBES, FEW_PROBES = 64, 4  # of neighbours, on each side, of a width that the spec refuses
WORDS = {"macs": "active MACs", "parameters": "parameters"}
COUNTS = {"macs": "active_macs", "parameters": "parameters"}

Count = Callable[[int], int | None]  # the cost of a width, None where the spec refuses it
Costed = tuple[int, int]  # a width and its cost


@dataclass(frozen=True)
class Level:
    """Adapts the points of a sweep that has `iso`."""

    sweep: Sweep
    base: Path | Mapping[str, Any]  # the recipe
    specs: Specs
    found: dict[str, int | ModgraphError] = field(default_factory=dict)  # by the other parameters of a point
    counts: dict[str, int | ModgraphError] = field(default_factory=dict)  # by all parameters

    @property
    def iso(self) -> Iso:
        assert self.sweep.iso is not None, "only such sweeps are adapted"
        return self.sweep.iso

    @property
    def key(self) -> str:
        return "parameters" if self.iso.macs is None else "macs"

    @cached_property
    def of_recipe(self) -> Mapping[str, Any]:
        """The parameters of the spec that the recipe sets. Raises `ModgraphError`."""
        report = Report()
        tree = read_recipe_tree(self.base, report)
        parameters = parameters_in(read_mapping(tree, "model", report), report)
        if report.errors:
            raise ModgraphError(report.list_diagnostics())
        return parameters

    @cached_property
    def target(self) -> int:
        """The cost that all points get. Raises `ModgraphError`."""
        given = self.iso.parameters if self.iso.macs is None else self.iso.macs
        assert given is not None, "the section is checked"
        return self._count(self._parameters(self.sweep.settings)) if isinstance(given, str) else round(given)

    def adapt(self, overrides: Mapping[str, Any]) -> dict[str, int]:
        """Return the value of the varied parameter that gives a point the target. Raises `ModgraphError`."""
        parameters = self._parameters(overrides)
        return {str(self.iso.vary): _remember(self.found, parameters, lambda: self._solve(parameters))}

    def _parameters(self, overrides: Mapping[str, Any]) -> dict[str, Any]:
        return {**self.of_recipe, **{key: value for key, value in overrides.items() if "." not in key}}

    def _count(self, parameters: Mapping[str, Any]) -> int:
        """Count what the spec costs. Raises `ModgraphError`."""

        def count() -> int:
            program = load(self.sweep.spec, **parameters)  # whose graph is not kept
            return program.cost(**(self.iso.lengths or {})).counts[COUNTS[self.key]]

        return _remember(self.counts, parameters, count)

    def _solve(self, parameters: Mapping[str, Any]) -> int:
        """Find the value that comes nearest to the target. Raises `ModgraphError`."""
        vary = self._check_vary()

        def count(width: int) -> int | None:
            try:
                return self._count({**parameters, vary: width})
            except ModgraphError:
                return None

        start = find_valid(count, self.own[vary], 0, WIDEST)
        if start is None:  # whatever the width
            self._count(parameters)
            raise AssertionError("its own width was refused before")
        if count(2 * start[0]) == start[1] == count(4 * start[0]):
            problem = f"{vary} does not change the {WORDS[self.key]}"
            raise self._refuse(problem, self._say_moving())
        near = find_nearest(count, start, self.target)
        best, cost = min(near.items(), key=lambda each: abs(each[1] - self.target))
        if abs(cost - self.target) <= TOLERANCE * self.target:
            return best
        listed = " and ".join(f"{vary}={width} has {cost:,}" for width, cost in sorted(near.items()))
        key = f"{self.key}: {cost}"
        way_out = f"choose a cost that one of them has, such as {key}, or vary another parameter"
        facts: Any = {"vary": vary, "target": self.target, "what": WORDS[self.key]}
        span = self.sweep.places.get("iso")
        raise ModgraphError([errors.IsoOutOfReach(span=span, nearest=listed, way_out=way_out, **facts)])

    @cached_property
    def own(self) -> Mapping[str, Any]:
        """The parameters of the spec under what is set for all points. Raises `ModgraphError`."""
        return self.specs.load(self.sweep.spec, **self._parameters(self.sweep.settings)).ir.parameters

    def _check_vary(self) -> str:
        """Return the varied parameter. Raises `ModgraphError` unless it is a whole number of the spec."""
        vary = self.iso.vary
        if vary is None:
            raise self._refuse("iso needs vary, the parameter that is adapted", self._say_moving())
        if vary not in self.own:
            raise self._refuse(f'unknown parameter "{vary}" in iso', self._say_moving(vary))
        if type(self.own[vary]) is not int or self.own[vary] < 1:
            raise self._refuse(f"iso cannot vary {vary}, which is no whole number from 1", self._say_moving())
        return vary

    def _say_moving(self, given: str = "") -> str:
        """Write the help that names the parameters which change the cost."""
        moving = self._list_moving()
        words = f"add vary: {moving[0]} (--vary {moving[0]}); " if moving else ""
        return did_you_mean(given, moving, f"{words}these change the {WORDS[self.key]}: {{known}}")

    def _refuse(self, problem: str, suggestion: str) -> ModgraphError:
        span = self.sweep.places.get("iso.vary") or self.sweep.places.get("iso")
        return ModgraphError([errors.IsoNeedsVary(span=span, problem=problem, suggestion=suggestion)])

    def _list_moving(self) -> list[str]:
        """List the whole-number parameters of the spec that change its cost, first those that do so most."""
        parameters = self._parameters(self.sweep.settings)
        before = self._count(parameters)

        def change(name: str) -> int:
            for width in (2 * self.own[name], self.own[name] + 1, self.own[name] - 1):
                try:
                    return abs(self._count({**parameters, name: width}) - before)
                except ModgraphError:
                    continue
            return 0

        changes = {name: change(name) for name, value in self.own.items() if type(value) is int and value > 0}
        return sorted((name for name in changes if changes[name]), key=lambda name: -changes[name])


def _remember(found: dict[str, int | ModgraphError], parameters: Mapping[str, Any], compute: Callable[[], int]) -> int:
    """Compute a number of some parameters once. Raises `ModgraphError`, as often as it is asked for."""
    key = repr(sorted(parameters.items()))
    if key not in found:
        try:
            found[key] = compute()
        except ModgraphError as error:
            found[key] = error
    result = found[key]
    if isinstance(result, ModgraphError):
        raise ModgraphError(result.diagnostics)
    return result


def find_nearest(count: Count, start: Costed, target: int) -> dict[int, int]:
    """Find the widths with the nearest costs on both sides of a target, one where the target is beyond all; the cost
    rises, or falls, with the width. Widths without a cost are skipped. `start` is a width with its cost."""

    def is_beyond(each: Costed) -> bool:
        return (each[1] > target) != (start[1] > target)

    rises = _does_rise(count, start)
    upwards = (start[1] <= target) == rises
    here, beyond = _walk(count, start, 1 if upwards else -1, is_beyond)
    if beyond is None:
        return dict([here])
    low, high = (here, beyond) if upwards else (beyond, here)
    for step in itertools.count():
        halved = step % 3 == 2  # now and then, since guesses may come near from one side only
        guess = (low[0] + high[0]) // 2 if halved else _interpolate(low, high, target)
        middle = find_valid(count, guess, low[0], high[0])
        if middle is None:
            break
        low, high = (low, middle) if (middle[1] > target) == rises else (middle, high)
    return dict([low, high])


def _does_rise(count: Count, start: Costed) -> bool:
    """Whether the cost rises with the width, by the next width in the one or the other direction."""
    for direction in (1, -1):
        _, other = _walk(count, start, direction, lambda each: each[1] != start[1])
        if other is not None:
            return (other[1] > start[1]) == (other[0] > start[0])
    return True


def _walk(
    count: Count, start: Costed, direction: int, is_beyond: Callable[[Costed], bool]
) -> tuple[Costed, Costed | None]:
    """Double or halve a width until one is beyond; return the last before it, and it, None if there is none. Near the
    last width that the spec accepts, steps become smaller."""
    here, step, probes = start, start[0] if direction > 0 else start[0] // 2, PROBES
    while step:
        low, high = (here[0], WIDEST) if direction > 0 else (0, here[0])
        found = find_valid(count, here[0] + direction * step, low, high, probes)
        if found is None:
            step, probes = step // 2, FEW_PROBES
            continue
        if is_beyond(found):
            return here, found
        here = found
        if probes == PROBES:
            step = here[0] if direction > 0 else here[0] // 2
    return here, None


def _interpolate(low: Costed, high: Costed, target: int) -> int:
    """Guess the width of a target between two others: costs are about squares of widths."""
    roots = [math.sqrt(each) for each in (low[1], target, high[1])]
    share = (roots[1] - roots[0]) / (roots[2] - roots[0]) if roots[2] != roots[0] else 0.5
    return round(low[0] + share * (high[0] - low[0]))


def find_valid(count: Count, width: int, low: int, high: int, probes: int = PROBES) -> Costed | None:
    """Find the nearest width to one, between two others, that the spec accepts; None if there is none near."""
    width = min(max(width, low + 1), high - 1)
    near = itertools.chain.from_iterable((width + step, width - step) if step else (width,) for step in range(probes))
    costs = ((each, count(each)) for each in near if low < each < high)
    return next(((each, cost) for each, cost in costs if cost is not None), None)
