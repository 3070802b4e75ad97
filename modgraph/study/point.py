"""The points of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


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
