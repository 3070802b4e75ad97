"""Compares two architectures: specs, runs, checkpoints, graphs or bundles, in any combination; two runs in all that
they recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from modgraph.inspect.diff import Comparison, Fate, Side, Weight, compare_sides
from modgraph.inspect.diff.architecture_diff import Values
from modgraph.inspect.diff.runs_diff import KeyChange, RunsCompared, compare_keys
from modgraph.ir import Graph, weights_of
from modgraph.passes import apply_passes, build_pipeline_behind
from modgraph.store.architecture import Architecture, Kind, read_architecture

if TYPE_CHECKING:
    from numpy import ndarray


@runtime_checkable
class HasArchitecture(Protocol):
    """An object with an architecture: a program or a run."""

    def architecture(self) -> Architecture: ...


def to_architecture(value: HasArchitecture | str | Path) -> Architecture:
    """Return the architecture at a path, or of a program or run. Raises `ModgraphError`, and `TypeError` for anything
    else."""
    if isinstance(value, str | Path):
        return read_architecture(value)
    if isinstance(value, HasArchitecture):
        return value.architecture()
    wanted = "a path (of a spec, run, checkpoint, graph or bundle), a Program or a Run"
    raise TypeError(f"expected {wanted}, not {type(value).__name__}: modgraph.load(PATH) reads a spec")


def differences(before: Architecture, after: Architecture, lengths: Mapping[str, int] | None = None) -> Comparison:
    """Compare two architectures. Raises `ModgraphError`.

    A bundle contains the graph of inference, so the other one is converted to that first.
    """
    sides, notes = [], []
    for each, other in ((before, after), (after, before)):
        graph = each.graph
        if other.kind is Kind.BUNDLE and each.kind is not Kind.BUNDLE:
            graph = _to_inference(each.graph, other)
            also = "".join(f", nor {name}" for name in _find_omissions(other) if name in each.graph.outputs)
            lacks = f"{also}, which the bundle leaves out" if also else ""
            notes.append(f"the {each.kind} is compared as it is exported, without what only training needs{lacks}")
        sides.append(Side(str(each.path), each.kind, graph))
    rounded = ["yes" if "int8" in each.manifest else "no" for each in (before, after)]
    if before.kind is after.kind is Kind.BUNDLE and rounded[0] != rounded[1]:
        notes.append(f"int8: {rounded[0]} → {rounded[1]}")
    runs, more = _compare_runs(before, after)
    found = compare_sides(sides[0], sides[1], after.moved, lengths or {}, (*notes, *more))
    manifests = _compare_manifests(before, after)
    return replace(found, values=_values_of(before, after, found.weights), runs=runs, manifests=manifests)


def _compare_manifests(before: Architecture, after: Architecture) -> tuple[KeyChange, ...]:
    """Compare what the manifests of two bundles say beyond their graphs, key by key."""
    if not before.kind is after.kind is Kind.BUNDLE:
        return ()
    from modgraph.tables.collect import flatten

    manifests = ({key: each.manifest[key] for key in each.manifest if key != "ir"} for each in (before, after))
    old, new = (dict(flatten(each)) for each in manifests)
    return (*compare_keys(old, new), *compare_keys(old, new, same=True))


def _compare_runs(before: Architecture, after: Architecture) -> tuple[RunsCompared | None, tuple[str, ...]]:
    """Compare two runs beyond their architectures, with notes. None for anything else. Raises `ModgraphError`."""
    if not before.kind is after.kind is Kind.RUN:
        return None, ()
    from modgraph.tables.run_pair import compare_runs

    assert before.run is not None and after.run is not None, "both are runs"
    return compare_runs((before.run, after.run))


NONE_YET = Values(reason="a run has no checkpoint yet")


def _values_of(before: Architecture, after: Architecture, weights: tuple[Weight, ...]) -> Values:
    """Compare the values of trained weights.

    Runs and checkpoints are compared name by name, weights that have grown in their old part. A bundle has a hash of
    its weights, so it is compared as a whole. Specs and graphs have no values. Raises `ModgraphError`.
    """
    kinds = {before.kind, after.kind}
    if kinds & {Kind.SPEC, Kind.GRAPH}:
        return Values()
    if Kind.BUNDLE in kinds:
        hashes = [_hash_of(each, other) for each, other in ((before, after), (after, before))]
        if None in hashes:
            return NONE_YET
        rounded = {"int8" in each.manifest for each in (before, after)}
        reason = "before int8 rounded those of one" if len(rounded) > 1 else ""
        return Values("equal" if hashes[0] == hashes[1] else "different", reason=reason)
    old, new = _weights_of(before), _weights_of(after)
    if old is None or new is None:
        return NONE_YET
    both = [(each.fate, each.before.name, each.after.name) for each in weights if each.before and each.after]
    kept = [(name, other) for fate, name, other in both if fate is not Fate.RESHAPED]
    different = tuple(other for name, other in kept if not _are_equal(old[name], new[other]))
    reshaped = ((other, old[name], new[other]) for fate, name, other in both if fate is Fate.RESHAPED)
    longer = tuple(other for other, was, now in reshaped if _are_equal(was, now[tuple(map(slice, was.shape))]))
    are_different = different or len(kept) < len(weights)
    return Values("different" if are_different else "equal", len(kept) - len(different), different, longer)


def _weights_of(found: Architecture) -> Mapping[str, ndarray] | None:
    """Read the weights of a checkpoint, or of a run's final one; None without any. Raises `ModgraphError`."""
    from modgraph.store.checkpoint_record import newest, read_weights_of_checkpoint

    if found.record is not None:
        return read_weights_of_checkpoint(found.path.with_suffix(".safetensors"), found.record)
    assert found.run is not None, "specs and bundles have no weights of their own"
    return newest(found.run.checkpoints, read_weights_of_checkpoint, best=True, origin=found.run.origin())


def _are_equal(old: ndarray, new: ndarray) -> bool:
    """Whether two arrays are equal bit for bit, so that NaN equals itself."""
    return old.dtype == new.dtype and old.shape == new.shape and old.tobytes() == new.tobytes()


def _hash_of(found: Architecture, bundle: Architecture) -> str | None:
    """Compute the hash of the weights that a bundle like the other one has; None for a run without weights."""
    if found.kind is Kind.BUNDLE:
        return str(found.manifest["weights"])
    from modgraph.store.checkpoint_record import hash_of_values

    weights, needed = _weights_of(found), [weight.name for weight in weights_of(_to_inference(found.graph, bundle))]
    return None if weights is None else hash_of_values({name: weights[name] for name in needed})


def to_whole(graph: Graph, bundle: Architecture) -> Graph:
    """Convert the graph of a bundle's spec to that of the bundle, for whole sequences."""
    return apply_passes(graph, build_pipeline_behind(bundle.graph, _find_omissions(bundle)))


def _to_inference(graph: Graph, bundle: Architecture) -> Graph:
    """Convert a graph to that of a bundle with the options of another bundle."""
    pipeline = build_pipeline_behind(bundle.graph, _find_omissions(bundle), "stepwise" in bundle.manifest)
    return apply_passes(graph, pipeline)


def _find_omissions(bundle: Architecture) -> list[str]:
    return [*bundle.manifest.get("left_out", {}).get("outputs", ())]
