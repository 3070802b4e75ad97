"""Plans a file: groups nodes by definition, and finds live nodes and the operands and results of calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property

from modgraph.backends.torch.source.text import variable
from modgraph.ir import Body, CallNode, Definition, Graph, Placed, body_of, find_computed_once
from modgraph.ir.graph import reach
from modgraph.ir.node import Node, OpNode, PoolNode, Result, RouteNode, ScanNode
from modgraph.ops.array import Array
from modgraph.ops.elementwise import MaskPadding
from modgraph.ops.shape import Flatten, Rename

Item = Node | Body
Place = tuple[int, int]  # a result of a body: the index of its node, and the index of the node's result


class Layout:
    """The structure of a graph, or of the region of a scan or of a pool's module.

    `program` is its counterpart in the program, `wanted` the results to compute, `base` the scan that contains a
    region.
    """

    def __init__(self, graph: Graph, program: Graph, wanted: Iterable[Result], base: ScanNode | None = None) -> None:
        self.graph, self.scan = graph, base
        self.root = body_of(graph, base.within if base else None)
        self.definitions: dict[Body, Definition] = {}
        self.programs: dict[str, PoolNode | ScanNode] = {}
        self.nodes: dict[Body, list[Node]] = {}
        self.invariant = find_computed_once(graph)
        self._match(program, self.root)
        self.wanted = tuple(wanted)
        self.live = self.find_dependencies(self.wanted)
        self.gives = self._find_results()

    def _match(self, program: Graph, body: Body) -> None:
        bodies = [item for item in body.items if isinstance(item, Body)]
        for call, inner in zip(program.nodes_of(CallNode), bodies, strict=True):
            self.definitions[inner] = call.definition
            self._match(call.definition.graph, inner)
        kinds: tuple[type[PoolNode] | type[ScanNode], ...] = (PoolNode, ScanNode)
        for kind in kinds:
            own = [item for item in body.items if isinstance(item, kind)]
            self.programs |= {node.name: of for node, of in zip(own, program.nodes_of(kind), strict=True)}
        items = (item for item in body.items if not isinstance(item, Placed))
        self.nodes[body] = [node for item in items for node in (self.nodes[item] if isinstance(item, Body) else [item])]

    # ------------------------------------------------------------ what is read

    def is_bare(self, result: Result) -> bool:
        """Whether a value has no axis of examples: the whole batch shares it."""
        return result.node in self.invariant or self.graph.type_of(result).per == "batch"

    def list_lengths(self, node: Node) -> list[Result]:
        """List the lengths of the padded axes that a node masks."""
        return [*self.graph.lengths(node.name).values()]

    def list_operands(self, node: Node) -> list[Result]:
        """List the operands of a node. A factorised route drops f(0), because its formula computes it."""
        of_zero = isinstance(node, RouteNode) and node.lowering == "factorised"
        return [*self.graph.inputs(node.name).values()][: 2 if of_zero else None]

    def list_reads(self, node: Node) -> list[Result]:
        """List the values that a node reads. An array reads nothing: its operand gives only the batch size."""
        operands = self.list_operands(node)
        if not isinstance(node, OpNode | RouteNode | ScanNode):
            return []
        if isinstance(node, OpNode) and isinstance(node.op, Array):
            return [] if node.op.all_weights() else operands
        return [*operands, *self.find_batch_size(node), *self.list_lengths(node)]

    def find_batch_size(self, node: Node) -> list[Result]:
        """Find the value that gives the batch size, for a node whose operands are all batch-invariant."""
        operands = [*self.graph.inputs(node.name).values()]
        found = next((each for each in operands if each.node in self.invariant), None)
        if (
            node.name in self.invariant
            or not found
            or not all(map(self.is_bare, operands))
            or self.find_unchanged_operand(node)
        ):
            return []
        while found.node in self.invariant:
            found = next(iter(self.graph.inputs(found.node).values()))
        return [found]

    def find_unchanged_operand(self, node: Node) -> Result | None:
        """Find the operand that a node returns unchanged; None if the node computes something."""
        if not isinstance(node, OpNode) or self.graph.lengths(node.name):
            return None
        is_same = isinstance(node.op, Rename | MaskPadding) or (isinstance(node.op, Flatten) and node.op.axes == 1)
        return next(iter(self.graph.inputs(node.name).values())) if is_same else None

    def word(self, result: Result) -> str:
        """Return the author's name of a value."""
        while isinstance(node := self.graph[result.node], OpNode) and isinstance(node.op, Rename | MaskPadding):
            (result,) = self.graph.inputs(node.name).values()
        return variable(result.node, self.graph[result.node].within)

    def find_dependencies(self, wanted: Iterable[Result]) -> set[str]:
        """Compute the nodes that some values depend on."""
        return reach(
            [each.node for each in wanted], lambda name: [each.node for each in self.list_reads(self.graph[name])]
        )

    @cached_property
    def first(self) -> set[str]:
        """The nodes that outputs depend on."""
        return self.find_dependencies(self.graph.outputs.values())

    @cached_property
    def optional(self) -> set[str]:
        """The nodes that depend on targets in inference. A call may omit targets."""
        found = set(self.graph.target_types)
        for node in self.graph:
            read = self.list_reads(node)
            if isinstance(node, OpNode) and node.op.outside_training and len(read) > 1:
                read = [self.graph.inputs(node.name)[node.op.outside_training]]
            if not found.isdisjoint(each.node for each in read):
                found.add(node.name)
        return found

    @cached_property
    def readers(self) -> dict[Result, list[str]]:
        found: dict[Result, list[str]] = defaultdict(list)
        for node in self.graph:
            for each in self.list_reads(node):
                found[each].append(node.name)
        return found

    # ------------------------------------------------------------ bodies

    def inside(self, item: Item) -> list[Node]:
        """List the live nodes of an item; a body includes the nodes of its calls."""
        return [node for node in (self.nodes[item] if isinstance(item, Body) else [item]) if node.name in self.live]

    def items(self, body: Body) -> list[Item]:
        """List the live items of a body, in order."""
        return [item for item in body.items if not isinstance(item, Placed) and self.inside(item)]

    def has_guard(self, body: Body) -> bool:
        """Whether a body computes something for outputs and also something that depends on targets."""
        names = {node.name for node in self.inside(body)}
        return not names.isdisjoint(self.first) and not names.isdisjoint(self.optional)

    def list_arguments(self, body: Body) -> list[Result]:
        """List the values that a body reads from outside, each once."""
        own = {node.name for node in self.nodes[body]}
        read = (each for node in self.inside(body) for each in self.list_reads(node))
        return list(dict.fromkeys(each for each in read if each.node not in own))

    def list_result_places(self, body: Body) -> tuple[Place, ...]:
        """List the places of a body's results. Results that outputs need in any call of the definition come first, the
        last of them in front."""
        main = [place for place in sorted(self.gives[body]) if (self.definitions[body].name, place) in self.main]
        return (*main[-1:], *main[:-1], *(place for place in sorted(self.gives[body]) if place not in main))

    def results(self, body: Body) -> list[Result]:
        """List the values of a body that others read."""
        return [Result(self.nodes[body][at].name, index) for at, index in self.list_result_places(body)]

    @cached_property
    def main(self) -> set[tuple[str, Place]]:
        """The results of definitions that outputs need."""
        given = ((body, place) for body, places in self.gives.items() for place in places)
        needed = ((body, place) for body, place in given if self.nodes[body][place[0]].name in self.first)
        return {(self.definitions[body].name, place) for body, place in needed}

    def _find_results(self) -> dict[Body, set[Place]]:
        """Find the results of each body. Calls of a definition have the same results, unless an unused result would
        sample."""
        while True:
            found, groups = dict[Body, set[Place]](), defaultdict[str, set[Place]](set)
            for body, definition in self.definitions.items():
                own = {node.name for node in self.nodes[body]}
                found[body] = {
                    (at, index)
                    for at, node in enumerate(self.nodes[body])
                    for index in range(len(node.types) if node.name in self.live else 0)
                    if (each := Result(node.name, index)) in self.wanted
                    or any(name in self.live and name not in own for name in self.readers[each])
                }
                groups[definition.name] |= found[body]
            before = len(self.live)
            for body, places in found.items():
                all_ = groups[self.definitions[body].name]
                more = (
                    self.find_dependencies(Result(self.nodes[body][at].name, index) for at, index in all_) - self.live
                )
                if places and not any(self.is_chance(self.graph[name]) for name in more):
                    found[body] = all_
                    self.live |= more
            if len(self.live) == before:
                return found

    def is_chance(self, item: Item) -> bool:
        """Whether an item samples, in itself, in a pool's module or in a scan's step."""
        match item:
            case OpNode(op=op):
                return op.by_chance
            case Body():
                return any(map(self.is_chance, self.inside(item)))
            case RouteNode():
                graphs = [*self.graph.pool_of(item).graphs()]
            case ScanNode():
                graphs = [part.graph for part in item.region.graph.parts()]
            case _:
                return False
        return any(isinstance(each, OpNode) and self.is_chance(each) for graph in graphs for each in graph)
