"""Passes from graph to graph, and the pipelines they make."""

from modgraph.passes.determinize import Determinize
from modgraph.passes.inference import InferenceOnly
from modgraph.passes.infrastructure import Pass
from modgraph.passes.lower import Lower, NoSuchLowering, choices
from modgraph.passes.novelty import NoveltyAsOutputs, WithoutNovelty, novelties
from modgraph.passes.pipelines import INFERENCE, PIPELINES, TRAINING, apply_passes, up_to
from modgraph.passes.reassociate import images, reassociated

__all__ = [
    "INFERENCE",
    "PIPELINES",
    "TRAINING",
    "Determinize",
    "InferenceOnly",
    "Lower",
    "NoSuchLowering",
    "NoveltyAsOutputs",
    "Pass",
    "WithoutNovelty",
    "apply_passes",
    "choices",
    "images",
    "novelties",
    "reassociated",
    "up_to",
]
