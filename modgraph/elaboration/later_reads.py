"""Explains how a value reads later tokens: the path of ops with their lines, and a way out."""

from __future__ import annotations

from dataclasses import dataclass

from modgraph.diagnostics import Note, Span
from modgraph.elaboration.visible_keys import explain_readings
from modgraph.ir import Graph, Node, OpNode, Result, RouteNode, ScanNode
from modgraph.ir.analysis.causality import Causality, Tokens
from modgraph.ir.analysis.transfer import Transfer
from modgraph.prelude import is_prelude
from modgraph.types import Axis

MOST_STEPS = 5  # of a path in a message
WAYS_OUT = {
    "attention": "hide later tokens: attention(…, causal=true), or give it a mask",
    "masked_softmax": "choose no later tokens: compare their positions",
    "softmax": "choose no later tokens, with masked_softmax and a comparison of positions",
    "contract": "multiply by a choice of earlier tokens: masked_softmax with a comparison of positions",
    "lstm": "leave reverse out",
    "gru": "leave reverse out",
    "within_capacity": "let the first tokens come first, (chosen, chosen) -> within_capacity, or leave capacity out",
    "sinkhorn": "let tokens choose by themselves, with softmax, and a loss or a state balance them",
    "balanced_assignment": "let tokens choose by themselves, with top_k, and a loss or a state balance them",
    "top_k": "let tokens choose modules: top_k along the modules",
    "conv1d": 'pad in front: conv1d(…, padding="causal")',
    "shift": "shift to later places: a positive number",
    "batch_norm": "use layer_norm or rms_norm, which take one token at a time",
}
OTHERWISE = "read earlier tokens only: a scan, cumulative_sum, attention(…, causal=true)"


@dataclass(frozen=True)
class LaterReads:
    """How a value reads later tokens: when (always, if empty), by which path, and a way out."""

    when: str
    path: str
    notes: tuple[Note, ...]
    way_out: str


class LaterReadsFinder:
    """Finds how values of a graph read later tokens."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.modes = [Transfer(graph, training) for training in (True, False)[: 1 + _differs(graph)]]

    def find(self, value: Result, tokens: Tokens, along: int | None = None) -> LaterReads | None:
        """Explain how a value reads later tokens, in training or in inference, by its index along an axis, by default
        the one that fits; None if it reads none."""
        modes = [Causality(each, tokens, value) for each in self.modes]
        paths = [each.find_path(value, along) for each in modes]
        return _explain(self.graph, paths, modes[0].along)


def _explain(graph: Graph, paths: list[list[Node]], axis: Axis) -> LaterReads | None:
    """Explain the paths in training and, if that differs, in inference; None without one."""
    found = next((each for each in paths if each), None)
    if found is None:
        return None
    when = "" if all(paths) else " in training" if paths[0] else " in inference"
    first, spans = found[0], [_find_span(each) for each in found]
    name = _describe(first, graph)
    notes = [Note(text=f"{name} reads later tokens", span=spans[0])] if spans[0] is not None else []
    way_out = WAYS_OUT.get(name, OTHERWISE)
    if isinstance(first, OpNode) and first.name in graph and first.span is spans[0]:  # not in a built-in text
        axis, about, way_out = explain_readings(first, graph) or (axis, (), way_out)
        notes += about
    over = f' over "{axis.name}"' if axis.name and "." not in axis.name else " over the tokens"
    return LaterReads(when, _join(found, spans, over, graph), tuple(notes), way_out)


def _differs(graph: Graph) -> bool:
    """Whether training and inference compute different things."""
    parts = [part.graph for part in graph.parts()]
    inside = [each for part in parts for _, region in part.modules() for each in (region.graph,)]
    return any(node.op.by_chance or node.op.over_batch for part in (*parts, *inside) for node in part.nodes_of(OpNode))


def _join(nodes: list[Node], spans: list[Span | None], over: str, graph: Graph) -> str:
    """Join the nodes of a path, each with its line; nodes of one line count once."""
    written, places = list[str](), [_format_line(span, spans[-1]) for span in spans]
    for at, (node, place) in enumerate(zip(nodes, places, strict=True)):
        if not written or place != places[at - 1]:
            written.append(_describe(node, graph) + over * (at == 0) + place)
    if len(written) > MOST_STEPS:
        kept = MOST_STEPS - 1
        written = [*written[:kept], f"{len(written) - kept - 1} more", written[-1]]
    return " -> ".join(written)


def _format_line(span: Span | None, last: Span | None) -> str:
    """Format the line of a node, with its file unless that is the file of the last one."""
    if span is None:
        return ""
    file = "" if last is not None and span.source is last.source else f"{span.source.label} "
    return f", {file}line {span.source.position(span.start)[0]}"


def _describe(node: Node, graph: Graph) -> str:
    """Name a node in the words of the spec: one in a built-in block by the block."""
    if node.span is not None and is_prelude(node.span.source):
        use = next((call for call in node.calls if call.span is not None and not is_prelude(call.span.source)), None)
        if use is not None and use.kind == "block":
            return use.definition
    match node:
        case OpNode():
            return node.op.name
        case RouteNode() if node.name in graph:
            return f'route to "{graph.pool_of(node).name}"'
        case ScanNode():
            return "scan"
        case _:
            return node.kind


def _find_span(node: Node) -> Span | None:
    """The place of a node in the spec; for one in a built-in router, that of its use."""
    spans = (node.span, *(call.span for call in node.calls))
    return next((span for span in spans if span is not None and not is_prelude(span.source)), None)
