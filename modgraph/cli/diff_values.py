"""Whether two trained models have the same weights: files are read, so the command does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from modgraph.inspect.diff import Fate, Trained, Values, Weight
from modgraph.ir import Graph, weights_of
from modgraph.passes import INFERENCE, apply_passes
from modgraph.store.opened import Kind, Opened
from modgraph.store.run_directory import RunDirectory

if TYPE_CHECKING:
    from numpy import ndarray

SAME_SHAPE = (Fate.KEPT, Fate.MOVED)


def values_of(before: Opened, after: Opened, weights: tuple[Weight, ...]) -> Values:
    """Of two runs name by name; where one is a bundle, which has a hash of its weights, as a whole; of specs nothing.

    Raises `ModgraphError`.
    """
    if Kind.SPEC in (before.kind, after.kind):
        return Values()
    if before.run is not None and after.run is not None:
        return _of_runs(before.run, after.run, weights)
    hashes = [_hash_of(each) for each in (before, after)]
    if None in hashes:
        return Values(reason="a run has no checkpoint yet")
    return Values(Trained.EQUAL if hashes[0] == hashes[1] else Trained.DIFFERENT)


def _of_runs(before: RunDirectory, after: RunDirectory, weights: tuple[Weight, ...]) -> Values:
    from modgraph.store.weight_values import weights_of_run

    old, new = weights_of_run(before), weights_of_run(after)
    if old is None or new is None:
        return Values(reason="a run has no checkpoint yet")
    pairs = [
        (each.before.name, each.after.name) for each in weights if each.fate in SAME_SHAPE if each.before and each.after
    ]
    different = tuple(name for first, name in pairs if not _equal(old, first, new, name))
    others = len(pairs) < len(weights)
    trained = Trained.DIFFERENT if different or others else Trained.EQUAL
    return Values(trained, len(pairs) - len(different), different)


def _equal(old: Mapping[str, ndarray], first: str, new: Mapping[str, ndarray], second: str) -> bool:
    """Bit for bit, so that what is no number equals itself."""
    return old[first].dtype == new[second].dtype and old[first].tobytes() == new[second].tobytes()


def _hash_of(found: Opened) -> str | None:
    """The hash of the weights that inference needs, None of a run without any."""
    if found.run is None:
        return str(found.manifest["weights"])
    from modgraph.store.weight_values import hash_of_values, weights_of_run

    weights = weights_of_run(found.run)
    return None if weights is None else hash_of_values({name: weights[name] for name in _needed(found.graph)})


def _needed(graph: Graph) -> list[str]:
    return [weight.name for weight in weights_of(apply_passes(graph, INFERENCE))]
