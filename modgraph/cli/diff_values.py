"""Whether two trained models have the same weights: files are read, so the command does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from modgraph.inspect.diff import Fate, Weight
from modgraph.inspect.diff.comparison import Values
from modgraph.ir import Graph, weights_of
from modgraph.passes import apply_passes, pipeline_behind
from modgraph.store.opened import Kind, Opened

if TYPE_CHECKING:
    from numpy import ndarray

NONE_YET = Values(reason="a run has no checkpoint yet")


def values_of(before: Opened, after: Opened, weights: tuple[Weight, ...]) -> Values:
    """Of runs and checkpoints name by name, of those that have grown the old part; where one is a bundle, which has a
    hash of its weights, as a whole. Specs and graphs have none. Raises `ModgraphError`."""
    kinds = {before.kind, after.kind}
    if kinds & {Kind.SPEC, Kind.GRAPH}:
        return Values()
    if Kind.BUNDLE in kinds:
        hashes = [_hash_of(each, other) for each, other in ((before, after), (after, before))]
        if None in hashes:
            return NONE_YET
        return Values("equal" if hashes[0] == hashes[1] else "different")
    old, new = _weights_of(before), _weights_of(after)
    if old is None or new is None:
        return NONE_YET
    both = [(each.fate, each.before.name, each.after.name) for each in weights if each.before and each.after]
    kept = [(name, other) for fate, name, other in both if fate is not Fate.RESHAPED]
    different = tuple(other for name, other in kept if not _are_equal(old[name], new[other]))
    longer = []
    for name, other in ((name, other) for fate, name, other in both if fate is Fate.RESHAPED):
        first = new[other][tuple(map(slice, old[name].shape))]
        if _are_equal(old[name], first.copy()):
            longer.append(other)
    return Values(
        "different" if different or len(kept) < len(weights) else "equal",
        len(kept) - len(different),
        different,
        tuple(longer),
    )


def _weights_of(found: Opened) -> Mapping[str, ndarray] | None:
    """The weights of a checkpoint, or of that which a run ends with, None where it has none. Raises `ModgraphError`."""
    from modgraph.store.weight_values import weights_of_checkpoint, weights_of_run

    if found.record is not None:
        return weights_of_checkpoint(found.path.with_suffix(".safetensors"), found.record)
    assert found.run is not None, "specs and bundles have no weights of their own"
    return weights_of_run(found.run)


def _are_equal(old: ndarray, new: ndarray) -> bool:
    """Bit for bit, so that what is no number equals itself."""
    return old.dtype == new.dtype and old.shape == new.shape and old.tobytes() == new.tobytes()


def _hash_of(found: Opened, bundle: Opened) -> str | None:
    """The hash of the weights that a bundle such as the other has, None of a run without any."""
    if found.kind is Kind.BUNDLE:
        return str(found.manifest["weights"])
    from modgraph.store.weight_values import hash_of_values

    weights, needed = _weights_of(found), [weight.name for weight in weights_of(as_in_bundle(found.graph, bundle))]
    return None if weights is None else hash_of_values({name: weights[name] for name in needed})


def as_in_bundle(graph: Graph, bundle: Opened) -> Graph:
    """A graph brought to what a bundle of it would hold that was exported as another was."""
    return apply_passes(graph, pipeline_behind(bundle.graph, left_out_of(bundle)))


def left_out_of(bundle: Opened) -> list[str]:
    """The outputs of its model that a bundle leaves out."""
    return [*bundle.manifest.get("left_out", {}).get("outputs", ())]
