"""Passes from graph to graph, and pipelines of passes."""

from modgraph.passes.determinize import Determinize
from modgraph.passes.fold import Fold
from modgraph.passes.fuse import Fuse, list_attention, list_seen_keys
from modgraph.passes.hoist import ComputeOnce, Hoist
from modgraph.passes.ids import ByIds
from modgraph.passes.inference import InferenceOnly, Prune
from modgraph.passes.infrastructure import Moved, Pass, apply_passes, optimise
from modgraph.passes.lower import Lower, NoSuchLowering, choices, edge_lowerings, list_routes_by_path, scatter_edges
from modgraph.passes.merge import Merge
from modgraph.passes.outputs import NoveltyAsOutputs, WithoutNovelty, WithoutOutputs, drop_outputs, novelties
from modgraph.passes.pipelines import (
    BUNDLE,
    EVERY_PIPELINE,
    INFERENCE,
    OPTIMISE,
    PIPELINES,
    STEPWISE,
    TRAINING,
    build_pipeline_behind,
    build_training_passes,
    cut_pipeline,
)
from modgraph.passes.reassociate import Reassociate, images
from modgraph.passes.scans import LowerScans, list_scans
from modgraph.passes.split import Split
from modgraph.passes.store import AUTO, MODULES, STORED, Store, explain_pools
