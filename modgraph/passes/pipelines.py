"""The pipelines of passes for training, for export and for generation.

`build` runs `TRAINING`. An export stores the graph after `BUNDLE` and computes the graph after `INFERENCE`. Generation
computes the graph after `STEPWISE`, and with `TRAINING`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from modgraph.ir import Graph, Result
from modgraph.passes.determinize import Determinize
from modgraph.passes.fold import Fold
from modgraph.passes.fuse import Fuse
from modgraph.passes.hoist import ComputeOnce, Hoist
from modgraph.passes.ids import ByIds
from modgraph.passes.incremental import Incremental
from modgraph.passes.inference import InferenceOnly, Prune
from modgraph.passes.infrastructure import Pass
from modgraph.passes.lower import Lower
from modgraph.passes.merge import Merge
from modgraph.passes.outputs import NoveltyAsOutputs, WithoutNovelty, drop_outputs, novelties
from modgraph.passes.reassociate import Reassociate
from modgraph.passes.scans import LowerScans
from modgraph.passes.split import Split
from modgraph.passes.store import Store

OPTIMISE: tuple[Pass, ...] = (
    Split(),
    Fold(),
    Merge(),
    Reassociate(),
    Fuse(),
    Hoist(),
    Prune(),
    LowerScans(),
    ComputeOnce(),
    Store(),
)
BUNDLE: tuple[Pass, ...] = (InferenceOnly(), Determinize(), ByIds(), Lower(exportable=True))
TRAINING: tuple[Pass, ...] = (ByIds(), Lower(), *OPTIMISE)
IN_BUNDLE: Mapping[str, Pass] = {
    "fuse": Fuse(exportable=True),
    "scans": LowerScans(exportable=True),
    "store": Store(exportable=True),
}
OPTIMISE_BUNDLE = tuple(IN_BUNDLE.get(each.name, each) for each in OPTIMISE)
INFERENCE: tuple[Pass, ...] = (*BUNDLE, *OPTIMISE_BUNDLE)
STEPWISE: tuple[Pass, ...] = (InferenceOnly(), Determinize(), Incremental())
WITHOUT_NOVELTY: tuple[Pass, ...] = (InferenceOnly(), WithoutNovelty(), *BUNDLE)
WITH_NOVELTY: tuple[Pass, ...] = (NoveltyAsOutputs(), *BUNDLE)
PIPELINES: Mapping[str, tuple[Pass, ...]] = MappingProxyType({"training": TRAINING, "inference": INFERENCE})
EVERY_PIPELINE: Mapping[str, tuple[Pass, ...]] = MappingProxyType({**PIPELINES, "stepwise": STEPWISE})


def export_pipeline(
    routing: bool, novelty: bool, left_out: Iterable[str] = (), stepwise: bool = False
) -> tuple[Pass, ...]:
    """Build the passes from a trained graph to that of a bundle without the outputs `left_out`.

    With `novelty`, records of novelty become outputs; otherwise they stay among the records if `routing`, or go. With
    `stepwise`, the bundle has the incremental form.
    """
    passes = WITH_NOVELTY if novelty else BUNDLE if routing else WITHOUT_NOVELTY
    return (*drop_outputs(left_out), *passes, *((Incremental(),) if stepwise else ()))


def build_training_passes(
    lowering: str | None = None, asked: Iterable[Result] = (), store: Store | None = None
) -> tuple[Pass, ...]:
    """Build `TRAINING` with a requested lowering and storage, and with further results `asked` of the model."""
    ends = frozenset(result.node for result in asked)
    given: dict[str, Pass] = {"lower": Lower(lowering), "fuse": Fuse(asked=ends), "prune": Prune(ends)}
    given |= {"scans": LowerScans(lowering), "store": store or Store()}
    return tuple(given.get(each.name, each) for each in TRAINING)


def build_pipeline_behind(bundle: Graph, left_out: Iterable[str] = (), stepwise: bool = False) -> tuple[Pass, ...]:
    """Build the passes that made the graph of a bundle without the outputs `left_out`. A bundle that is `stepwise` need
    not have caches."""
    records = novelties(bundle)
    return export_pipeline(bool(records), bool(records.keys() & bundle.outputs.keys()), left_out, stepwise)


def cut_pipeline(name: str) -> tuple[Pass, ...]:
    """Cut a pipeline after one of its passes, named `PIPELINE.PASS`, or `PASS` of the inference pipeline, or of the
    first one that has it.

    Raises `KeyError` for an unknown name.
    """
    pipeline, _, last = name.rpartition(".")
    for each in [pipeline] if pipeline else ["inference", *EVERY_PIPELINE]:
        names = [found.name for found in EVERY_PIPELINE[each]]
        if last in names:
            return EVERY_PIPELINE[each][: names.index(last) + 1]
    raise KeyError(name)
