"""The keys in which runs differ, by which tables tell them apart."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from modgraph.tables.facts import DATA, GRAPH, MODEL, POINT, SWEEP, RunFacts

START = "start.run"


def value_of(run: RunFacts, key: str) -> Any:
    """Return the value of a key; of `start.run` the point of the sweep that a run starts from, whatever its seed."""
    return run.start if key == START and run.start else run.find(key)


def freeze(value: Any) -> Hashable:
    """Return a value that can be a key of a dictionary; true differs from 1."""
    if isinstance(value, list | tuple):
        return tuple(map(freeze, value))
    return (type(value).__name__, value) if isinstance(value, bool) else value


def list_seeds(runs: Iterable[RunFacts]) -> set[str]:
    """Return the keys that are seeds in some of the runs."""
    return {key for run in runs for key in run.seeds}


def find_differences(runs: Sequence[RunFacts]) -> list[str]:
    """Return the keys in which runs differ, but for seeds: the point of a sweep, what it varies, the model, parameters
    and keys of the recipe; then the graph and the data where all these are equal."""
    varied = dict.fromkeys(key for run in runs for key in run.values)
    settings = dict.fromkeys(key for run in runs for key in run.settings)
    seeds = sorted(list_seeds(runs))
    ordered = dict.fromkeys((POINT, *varied, SWEEP, MODEL, *sorted(settings, key=lambda key: "." in key)))
    found = [key for key in ordered if key not in seeds and not is_constant(runs, key)]
    if not is_determined(runs, GRAPH, [*found, *(key for key in seeds if "." not in key)]):
        found.append(GRAPH)
    splits = any(run.find("train.validation") for run in runs)  # by train.seed
    of_data = [key for key in seeds if key.startswith("data.") or splits]
    return found if is_determined(runs, DATA, [*found, *of_data]) else [*found, DATA]


def is_constant(runs: Iterable[RunFacts], key: str) -> bool:
    """Whether runs have equal values of a key."""
    return len({freeze(value_of(run, key)) for run in runs}) < 2


def split_by(runs: Iterable[RunFacts], keys: Sequence[str]) -> dict[tuple[Hashable, ...], list[RunFacts]]:
    """Partition runs by the values of keys, in the order in which these first occur."""
    found: dict[tuple[Hashable, ...], list[RunFacts]] = {}
    for run in runs:
        found.setdefault(tuple(freeze(value_of(run, key)) for key in keys), []).append(run)
    return found


def choose_keys(runs: Sequence[RunFacts], differing: Sequence[str]) -> list[str]:
    """Return the fewest of the keys, in their order, that tell apart all that the keys do; with those that a sweep
    varies, unless its points have names."""
    has_names, kept = POINT in differing, list[str]()
    varied = {key for run in runs for key in run.values}
    for key in differing:
        if not (is_determined(runs, key, kept) and (has_names or key not in varied)):
            kept.append(key)
    return kept


def is_determined(runs: Iterable[RunFacts], key: str, keys: Sequence[str]) -> bool:
    """Whether runs with equal values of some keys have equal values of another."""
    return all(is_constant(part, key) for part in split_by(runs, keys).values())


def shorten_keys(keys: Iterable[str]) -> Mapping[str, str]:
    """Return what keys are called in a heading: `lr` for `train.optimizer.lr`, where no other key ends so."""
    names = list(keys)
    parts = {key: key.split(".") for key in names if key.startswith("train.")}
    short = {key: ".".join(path[-2 if path[-1] == "name" else -1 :]) for key, path in parts.items()}
    others = [*(key for key in names if key not in parts), *short.values()]
    return {key: short[key] if key in short and others.count(short[key]) == 1 else key for key in names}
