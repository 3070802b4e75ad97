"""A sweep as a value: many trainings of one spec, from a file or from a command's options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from modgraph.declare import setting
from modgraph.diagnostics import Span
from modgraph.recipes.schema import Section
from modgraph.study.space import Space

SPEC = "spec"  # as the target of `Iso`: what the spec costs as it is
SEED = "train.seed"


class Seeds(Section):
    """How many seeds each point is trained with: 0, 1, 2, …"""

    count: int = setting(min=1, max=10_000, doc="trainings of each point, with seeds from 0")
    keys: tuple[str, ...] = setting((SEED,), doc="the keys that get the seed, all of them the same")

    def contradiction(self) -> str | None:
        return None if self.keys and len({*self.keys}) == len(self.keys) else "needs different keys, at least one"


class Iso(Section):
    """Gives every point the same cost, to within 2 %, by a whole-number parameter of the spec."""

    macs: float | str | None = setting(
        None, min=1, choices=(SPEC,), doc="active multiply-accumulates per example, or spec: what the spec costs"
    )
    parameters: float | str | None = setting(
        None, min=1, choices=(SPEC,), doc="weights, or spec: how many the spec has"
    )
    vary: str | None = setting(None, doc="the parameter of the spec that is adapted, such as width")
    lengths: Mapping[str, int] | None = setting(
        None, min=1, doc="lengths of axes without a number, by name; 1 if not given"
    )

    def contradiction(self) -> str | None:
        given = [each for each in (self.macs, self.parameters) if each is not None]
        return None if len(given) == 1 else "needs macs or parameters, one of them"


class Random(Section):
    """Points sampled at random from the grid and its ranges."""

    count: int = setting(min=1, max=100_000, doc="points, each another one")
    seed: int = setting(0, min=0, doc="seed of the sampling")


class Optuna(Section):
    """Points that Optuna proposes one after another, by what the finished ones gave."""

    trials: int = setting(min=1, max=100_000, doc="points")
    metric: str = setting(doc="what to improve: a metric of run.json or metrics.jsonl, such as validation.total_loss")
    prune: bool = setting(False, doc="stop trainings that fall behind")
    seed: int = setting(0, min=0, doc="seed of the search")


@dataclass(frozen=True)
class Sweep:
    """Many trainings of one spec. `settings` hold for all; `points` are named rows of further settings, with facts
    `about` them; `grid` has what is tried of each key. Seeds, by default none, are innermost.

    `start` names the sweep whose runs give the first weights. `places` has the span of each part by its dotted path in
    a sweep file, such as `grid.experts`.
    """

    spec: Path
    name: str = ""
    recipe: Path | Mapping[str, Any] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    points: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    about: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    grid: Space = field(default_factory=dict)
    seeds: Seeds | None = None
    iso: Iso | None = None
    random: Random | None = None
    optuna: Optuna | None = None
    start: str | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)
