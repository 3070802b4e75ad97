"""The one rewriter: copies a graph and the regions in it, node by node, sources first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import is_

from modgraph.diagnostics import Span
from modgraph.frozen import change_fields, replace_fields
from modgraph.ir.graph import Graph
from modgraph.ir.node import DecisionNode, InputNode, Inputs, Node, OpNode, PoolNode, Result, ScanNode
from modgraph.ir.part import Part, Region, infer_scan_types
from modgraph.ops import Op
from modgraph.types import TensorType


@dataclass(frozen=True)
class Built:
    """Replacement nodes, each with its operands: results of the old graph or of earlier replacements.

    The node with the old name replaces the old one and uses the same pool and router; `uses` has those of other nodes.
    `moved` maps results of the old node to those of the new one, if their places differ.
    """

    nodes: tuple[tuple[Node, Inputs], ...]
    uses: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    moved: Mapping[Result, Result] = field(default_factory=dict)


def build_op(name: str, op: Op, *operands: Result, span: Span | None = None) -> tuple[OpNode, Inputs]:
    """A new op node that owns its weights, if any, with its operands."""
    inputs = dict(zip(op.slots_of(len(operands)), operands, strict=True))
    return OpNode(name=name, owner=name, op=op, span=span), inputs


Change = Node | Built | Result | None
Rule = Callable[[Node, Part], Change]


def copy_graph(graph: Graph) -> Graph:
    """A copy of a graph, to which nodes can be added."""
    return _Copy(Part(graph), lambda node, part: node).graph


def rewrite_graph(graph: Graph, rule: Rule) -> Graph:
    """Replace each node by what a rule returns: a node, nodes, a result, or None if nothing reads it.

    The rule takes a node and the part of the old graph that contains it; then it runs on the regions of the node that
    it returned. Types are inferred anew. Returns the graph itself if the rule leaves every node as it is. Raises
    `Misfit` if types do not fit any more.
    """
    return rewrite_with_moves(graph, rule)[0]


def rewrite_with_moves(graph: Graph, rule: Rule) -> tuple[Graph, Mapping[Result, Result]]:
    """Like `rewrite_graph`; also maps results of the graph to those that replace them."""
    copy = _Copy(Part(graph), rule)
    return copy.graph if copy.differs else graph, copy.moved


def prune_region(region: Region, rule: Rule) -> Region:
    """Rewrite a region, and drop the arguments that the rule removes."""
    return _Copy(Part(region.graph), rule).region(region)


class _Copy:
    """A copy of one graph, which may differ; `moved` maps results of the old graph to those of the copy."""

    def __init__(self, part: Part, rule: Rule, arguments: Mapping[str, TensorType] | None = None) -> None:
        self.part, self.rule, self.arguments = part, rule, arguments or {}
        self.graph = Graph(part.graph.name, part.graph.parameters)
        self.moved: dict[Result, Result] = {}
        self.differs = False
        for node in part.graph:
            self._take(node)

    def now(self, result: Result) -> Result:
        return self.moved.get(result, result)

    def _all_now(self, results: Inputs) -> dict[str, Result]:
        return {slot: self.now(result) for slot, result in results.items()}

    def region(self, region: Region) -> Region:
        """The new region for the old one, whose graph this copies; the old one if nothing differs."""
        if not self.differs:
            return region
        arguments = tuple(name for name in region.arguments if name in self.graph)
        return Region(self.graph, arguments, tuple(map(self.now, region.results)))

    def _take(self, node: Node) -> None:
        found = self.rule(node, self.part)
        self.differs |= found is not node
        match found:
            case Result() as source:
                self.moved[Result(node.name)] = self.now(source)
            case Built(nodes, uses, moved):
                uses = {node.name: self.part.graph.uses(node.name), **uses}
                for each, read in nodes:
                    placed = replace_fields(each, within=node.within)
                    self.graph.add_typed(placed, self._all_now(read), uses.get(each.name))
                self.moved |= moved
            case Node() as changed:
                self._add(changed, node)

    def _add(self, node: Node, before: Node) -> None:
        """Add the replacement of a node. An op may lose operands, a decision rounds and records."""
        graph = self.part.graph
        inputs = self._all_now(graph.inputs(before.name))
        if isinstance(node, DecisionNode) and isinstance(before, DecisionNode):
            assert node.rounds in (1, before.rounds), "a decision keeps all rounds, or the last alone"
            inputs = {slot: inputs[slot] for slot in node.slots}
        if isinstance(node, OpNode) and isinstance(before, OpNode) and node.op != before.op:
            inputs = {slot: result for slot, result in inputs.items() if slot in node.op.slots_of(len(inputs))}
        node = self._with_regions(node, inputs)
        if node.within is not before.within:
            node = replace_fields(node, within=before.within)
        known = graph.signature(before) if isinstance(before, OpNode) else None
        self.graph.add_typed(node, inputs, graph.uses(before.name), known)
        self.differs |= self.graph[node.name] is not before

    def _with_regions(self, node: Node, inputs: Inputs) -> Node:
        match node:
            case PoolNode():
                place = f"{self.part.place}{node.name}"
                parts = [Part(each.graph, place=f"{place}/{at}/") for at, each in enumerate(node.regions)]
                regions = tuple(map(self._inside, parts, node.regions))
                return node if all(map(is_, regions, node.regions)) else replace_fields(node, regions=regions)
            case ScanNode():
                types = {slot: self.graph.type_of(result) for slot, result in inputs.items()}
                sequence = types[node.variable]
                types[node.variable] = sequence.with_shape(sequence.shape[1:])
                region = self._inside(Part(node.region.graph, node, self.part.place, self.part), node.region, types)
                changed = node if region is node.region else replace_fields(node, region=region)
                return change_fields(changed, types=infer_scan_types(changed, sequence.shape[0]))
            case InputNode():
                return change_fields(node, types=(self.arguments.get(node.name, node.types[0]),))
            case _:
                return node

    def _inside(self, part: Part, region: Region, arguments: Mapping[str, TensorType] | None = None) -> Region:
        found = _Copy(part, self.rule, arguments).region(region)
        assert found.arguments == region.arguments, "a rule leaves arguments of a region to the node that has it"
        return found
