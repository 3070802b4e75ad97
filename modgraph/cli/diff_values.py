"""Whether two trained models have the same weights: files are read, so the command does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from modgraph.inspect.diff import Fate, Trained, Values, Weight
from modgraph.ir import Graph, weights_of
from modgraph.passes import apply_passes, pipeline_behind
from modgraph.store.opened import Kind, Opened

if TYPE_CHECKING:
    from numpy import ndarray

    Arrays = Mapping[str, ndarray]

SAME = (Fate.KEPT, Fate.MOVED)
NONE_YET = Values(reason="a run has no checkpoint yet")


def values_of(before: Opened, after: Opened, weights: tuple[Weight, ...]) -> Values:
    """Of runs and checkpoints name by name; where one is a bundle, which has a hash of its weights, as a whole.

    Specs and graphs have none. Raises `ModgraphError`.
    """
    kinds = {before.kind, after.kind}
    if kinds & {Kind.SPEC, Kind.GRAPH}:
        return Values()
    if Kind.BUNDLE not in kinds:
        return _by_name(_weights_of(before), _weights_of(after), weights)
    hashes = [_hash_of(each, other) for each, other in ((before, after), (after, before))]
    if None in hashes:
        return NONE_YET
    return Values(Trained.EQUAL if hashes[0] == hashes[1] else Trained.DIFFERENT)


def _weights_of(found: Opened) -> Arrays | None:
    """The weights of a checkpoint, or of that which a run ends with, None where it has none. Raises `ModgraphError`."""
    from modgraph.store.weight_values import weights_of_checkpoint, weights_of_run

    if found.record is not None:
        return weights_of_checkpoint(found.path.with_suffix(".safetensors"), found.record)
    assert found.run is not None, "specs and bundles have no weights of their own"
    return weights_of_run(found.run)


def _by_name(old: Arrays | None, new: Arrays | None, weights: tuple[Weight, ...]) -> Values:
    """Of those that have grown, the old part is compared."""
    if old is None or new is None:
        return NONE_YET
    pairs = [(each.before.name, each.after.name) for each in weights if each.fate in SAME if each.before and each.after]
    longer = [(each.before, each.after) for each in weights if each.fate is Fate.RESHAPED if each.before and each.after]
    different = tuple(name for first, name in pairs if not _equal(old[first], new[name]))
    kept = tuple(after.name for before, after in longer if _goes_on(old[before.name], new[after.name]))
    others = len(pairs) < len(weights)
    trained = Trained.DIFFERENT if different or others else Trained.EQUAL
    return Values(trained, len(pairs) - len(different), different, kept)


def _equal(old: ndarray, new: ndarray) -> bool:
    """Bit for bit, so that what is no number equals itself."""
    return old.dtype == new.dtype and old.shape == new.shape and old.tobytes() == new.tobytes()


def _goes_on(old: ndarray, new: ndarray) -> bool:
    """Whether the first places along every axis are those of the old one."""
    return _equal(old, new[tuple(map(slice, old.shape))].copy())


def _hash_of(found: Opened, bundle: Opened) -> str | None:
    """The hash of the weights that a bundle such as the other has, None of a run without any."""
    if found.kind is Kind.BUNDLE:
        return str(found.manifest["weights"])
    from modgraph.store.weight_values import hash_of_values

    weights = _weights_of(found)
    return None if weights is None else hash_of_values({name: weights[name] for name in _needed(found.graph, bundle)})


def _needed(graph: Graph, bundle: Opened) -> list[str]:
    return [weight.name for weight in weights_of(as_in_bundle(graph, bundle))]


def as_in_bundle(graph: Graph, bundle: Opened) -> Graph:
    """A graph brought to what a bundle of it would hold that was exported as another was."""
    return apply_passes(graph, pipeline_behind(bundle.graph, left_out_of(bundle)))


def left_out_of(bundle: Opened) -> list[str]:
    """The outputs of its model that a bundle leaves out."""
    return [*bundle.manifest.get("left_out", {}).get("outputs", ())]
