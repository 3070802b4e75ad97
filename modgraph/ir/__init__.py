"""The one typed graph that every stage after the parser reads."""

from modgraph.ir.analysis.batch_invariant import batch_invariant, computed_once, is_array, is_function
from modgraph.ir.analysis.comparisons import Compared, compared_in, comparisons, ignored_labels, with_missing_labels
from modgraph.ir.analysis.learnt import (
    ModuleAxis,
    learnt_weights,
    module_axes,
    moved_states,
    weights_behind,
    with_losses,
)
from modgraph.ir.analysis.reach import Needed, decisions_by_result, needed_in, paths_from_targets
from modgraph.ir.analysis.values import (
    Padding,
    drawn_by,
    free_draws,
    free_length_name,
    is_free_draw,
    length_name,
    longest,
    padded_axes,
    padding_of,
    told,
)
from modgraph.ir.call import Call
from modgraph.ir.decision import Decision
from modgraph.ir.edits import Edit, Freeze, Grow, Mark, Shrink, class_axes, edit_from_json, grow, replayed
from modgraph.ir.graph import Graph
from modgraph.ir.invalid import InvalidGraph, UnreadableGraph
from modgraph.ir.node import (
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
from modgraph.ir.part import Part, bind_route, facts_of
from modgraph.ir.program.flatten import flatten
from modgraph.ir.program.outline import outline
from modgraph.ir.program.program import CallNode, Definition, Program
from modgraph.ir.program.relative import OUTSIDE, name_in_call, rename_axes
from modgraph.ir.program.rename import rename
from modgraph.ir.region import Region
from modgraph.ir.rewrite import Built, Change, Expanded, Narrowed, Rule, pruned, rewritten, rewritten_with_moves
from modgraph.ir.stored.fields import MOST_MODULES
from modgraph.ir.stored.nodes import flat_to_json, node_with_edges
from modgraph.ir.stored.program import NotReadBack, from_json, stored_form, to_json
from modgraph.ir.text.write import heading, to_text
from modgraph.ir.tree import Body, Placed, body_of, in_order
from modgraph.ir.verify.nodes import verify
from modgraph.ir.weights import GraphWeight, below, node_weights, weights_of

__all__ = [
    "MOST_MODULES",
    "OUTSIDE",
    "Body",
    "Built",
    "Call",
    "CallNode",
    "Change",
    "Compared",
    "Decision",
    "DecisionNode",
    "Definition",
    "Edit",
    "Expanded",
    "Freeze",
    "Graph",
    "GraphWeight",
    "Grow",
    "GrowthNode",
    "InputNode",
    "InvalidGraph",
    "LossNode",
    "Mark",
    "ModuleAxis",
    "Narrowed",
    "Needed",
    "Node",
    "NotReadBack",
    "OpNode",
    "OutputNode",
    "Padding",
    "Part",
    "Placed",
    "PoolNode",
    "Program",
    "Region",
    "Result",
    "RouteNode",
    "RouterNode",
    "Rule",
    "ScanNode",
    "Shrink",
    "TargetNode",
    "UnreadableGraph",
    "batch_invariant",
    "below",
    "bind_route",
    "body_of",
    "class_axes",
    "compared_in",
    "comparisons",
    "computed_once",
    "decisions_by_result",
    "drawn_by",
    "edit_from_json",
    "facts_of",
    "flat_to_json",
    "flatten",
    "free_draws",
    "free_length_name",
    "from_json",
    "grow",
    "heading",
    "ignored_labels",
    "in_order",
    "is_array",
    "is_free_draw",
    "is_function",
    "learnt_weights",
    "length_name",
    "longest",
    "module_axes",
    "moved_states",
    "name_in_call",
    "needed_in",
    "node_weights",
    "node_with_edges",
    "outline",
    "padded_axes",
    "padding_of",
    "paths_from_targets",
    "pruned",
    "rename",
    "rename_axes",
    "replayed",
    "rewritten",
    "rewritten_with_moves",
    "stored_form",
    "to_json",
    "to_text",
    "told",
    "verify",
    "weights_behind",
    "weights_of",
    "with_losses",
    "with_missing_labels",
]
