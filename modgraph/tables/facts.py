"""What is known of a run without its weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from modgraph.tables.sweep_folder import SEEDS

FINISHED, UNFINISHED, FAILED, DAMAGED, PLANNED = STATES = ("finished", "unfinished", "failed", "damaged", "planned")
COSTS = ("parameters", "trainable", "macs", "active_macs", "seconds", "steps", "epochs")
RUN, STATE, REASON = "run", "state", "reason"
MODEL, GRAPH, DATA = "model", "graph", "data"
SWEEP, POINT, TRIAL, PRUNED = "sweep", "point", "trial", "pruned"
ABOUT = "about."  # the prefix by which a fact of a point can always be named


@dataclass(frozen=True, repr=False)
class RunFacts:
    """What is known of a run without its weights.

    `path` is its folder and `name` that folder below the one that was searched. `state` is `finished`, `unfinished`,
    `failed`, `damaged`, or `planned` for a point of a sweep that has not begun; `reason` says why it failed or what is
    damaged. `model` is the graph's name. `settings` has every key of the recipe with a dot and every parameter of the
    model by its plain name, defaults included. `metrics` are those at the end, by `split.metric`, and `latest` the
    newest of its log. `costs` are `parameters`, `trainable`, `macs` and `active_macs` per example, `seconds` of
    training, `steps` and `epochs`. `graph` and `data` are digests of the first graph and of the examples. `axes` are
    those of any length, which count with length 1. `start` describes the point of a sweep that it starts from.

    Of a point of a sweep, `values` has the keys that vary, seeds included, `seeds` are the keys that are seeds, `label`
    is its name and `about` are its facts for tables.
    """

    path: Path
    name: str
    state: str
    reason: str = ""
    model: str = ""
    sweep: str = ""
    label: str = ""
    trial: int | None = None
    pruned: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    seeds: tuple[str, ...] = SEEDS
    settings: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    latest: Mapping[str, float | None] = field(default_factory=dict)
    costs: Mapping[str, float | None] = field(default_factory=dict)
    graph: str = ""
    data: str = ""
    axes: tuple[str, ...] = ()
    start: str = ""

    def __repr__(self) -> str:
        values = " ".join(f"{key}={value}" for key, value in self.values.items())
        return f"<{self.state} run {self.path}{f': {values}' if values else ''}>"

    @property
    def is_finished(self) -> bool:
        return self.state == FINISHED

    def find(self, key: str) -> Any:
        """Return the value of a key: a setting, a metric, a cost, a fact, or `run`, `state`, `model`, `sweep`, `point`.
        None if the run has no such key."""
        return next((place[key] for place in self._places() if key in place), None)

    def has(self, key: str) -> bool:
        """Whether the run knows a key."""
        return any(key in place for place in self._places())

    def list_keys(self) -> Iterator[str]:
        """Yield every key that `find` knows, some twice."""
        for place in self._places():
            yield from place

    def _places(self) -> tuple[Mapping[str, Any], ...]:
        """Where a key is looked up, in this order."""
        own: dict[str, Any] = {
            RUN: self.name,
            STATE: self.state,
            MODEL: self.model,
            SWEEP: self.sweep,
            REASON: self.reason,
        }
        own |= {GRAPH: self.graph, DATA: self.data, POINT: self.label, PRUNED: self.pruned, TRIAL: self.trial}
        about = {f"{ABOUT}{name}": value for name, value in self.about.items()}
        return own, self.settings, self.costs, self.metrics, self.latest, about, self.about
