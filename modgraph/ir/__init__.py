"""The typed graph that every stage after the parser reads."""

from modgraph.ir.analysis.affine import Factor, Labels, NotAffine, Term
from modgraph.ir.analysis.comparisons import (
    Compared,
    comparisons,
    find_ignored_labels,
    find_loss_targets,
    with_missing_labels,
)
from modgraph.ir.analysis.learnt import (
    find_learnt_weights,
    find_module_axes,
    find_moved_states,
    find_weights_behind,
    with_losses,
)
from modgraph.ir.analysis.reach import (
    Needed,
    find_batch_statistics,
    find_decisions_by_result,
    find_dependencies,
    is_batch_statistic,
    paths_from_targets,
)
from modgraph.ir.analysis.recurrences import Matrix, Recurrence, Recurrences, find_recurrences
from modgraph.ir.analysis.values import (
    Padding,
    batch_invariant,
    find_computed_once,
    find_draw,
    find_padded_axes,
    free_draws,
    free_length_name,
    is_array,
    is_free_draw,
    is_function,
    list_padding,
    longest,
    make_forced_key,
    name_length,
)
from modgraph.ir.edits import Edit, Freeze, Grow, Mark, Shrink, edit_from_json, grow, list_class_axes, replay_edits
from modgraph.ir.graph import Graph
from modgraph.ir.invalid import InvalidGraph, UnreadableGraph
from modgraph.ir.node import (
    EACH,
    RECURRENCE,
    Call,
    DecisionNode,
    GrowthNode,
    InputNode,
    LossNode,
    Node,
    OpNode,
    OutputNode,
    PoolNode,
    Result,
    RouteNode,
    RouterNode,
    ScanNode,
    TargetNode,
)
from modgraph.ir.part import Decision, Part, Region, facts_of, find_pool_types, regions_of, with_regions
from modgraph.ir.program.flatten import flatten
from modgraph.ir.program.outline import outline
from modgraph.ir.program.program import CallNode, Definition
from modgraph.ir.program.relative import OUTSIDE, name_in_call, rename, rename_axes
from modgraph.ir.rewrite import (
    Built,
    Change,
    Rule,
    build_op,
    copy_graph,
    prune_region,
    rewrite_graph,
    rewrite_with_moves,
)
from modgraph.ir.stored.fields import MOST_MODULES
from modgraph.ir.stored.nodes import flat_to_json, node_with_edges
from modgraph.ir.stored.program import NotReadBack, from_json, to_json, to_verified_json
from modgraph.ir.text.write import heading, to_text
from modgraph.ir.tree import Body, Placed, body_of, sort_by_body
from modgraph.ir.verify.nodes import verify
from modgraph.ir.weights import GraphWeight, join_name, list_node_weights, weights_of
