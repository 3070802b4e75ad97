"""Keep the smallest values from which those that are read a second time follow."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

from modgraph.ir import Built, Change, Graph, Part, Result, build_op, rewrite_graph
from modgraph.ir.node import Inputs, Node, OpNode
from modgraph.ops import Op
from modgraph.ops.along_axis import Positions
from modgraph.ops.array import Parameter
from modgraph.ops.axes import Transpose
from modgraph.ops.linear import Contract, Linear
from modgraph.ops.shape import Rename
from modgraph.passes.factors import VIEWS, Factor, FactorFinder, Product, is_cheap
from modgraph.passes.inference import Prune
from modgraph.passes.infrastructure import Pass
from modgraph.passes.sink import Reading, find_place, find_reading
from modgraph.types import TensorType

MOVE = 4  # multiply-accumulates in the time in which a number is kept and read again
SOURCE, SINK = "source", "sink"


@dataclass(frozen=True)
class KeepLess(Pass):
    """Read an axis of tokens a second time where a token has the fewest numbers.

    A minimum cut decides, between what is computed once for each token and what sums over tokens. A kept number costs
    `MOVE`, and a number that an op computes again in every step costs 1. Ops with weights or multiply-accumulates are
    not computed again. But a linear map without bias whose results only products read can join the other operand of
    each: that costs the additional multiply-accumulates for each token.
    """

    name: ClassVar[str] = "keep_less"

    axis: str = ""  # of tokens

    def __call__(self, graph: Graph) -> Graph:
        for second in self.list_axes(graph):
            cut = Cut(graph, self.axis, second)
            if cut.again:  # a map that joins products is no longer applied to tokens
                graph = Prune()(rewrite_graph(graph, Rewriter(cut).rewrite))
        return graph

    def list_axes(self, graph: Graph) -> list[str]:
        """The names of the second readings of the axis."""
        found = (find_reading(node, graph) for node in graph)
        return [*dict.fromkeys(each.second for each in found if each is not None and each.first == self.axis)]


@dataclass
class Cut:
    """Chooses what is read of one graph along `second`, the second reading of the axis `first`."""

    graph: Graph
    first: str
    second: str

    @cached_property
    def readings(self) -> dict[str, Reading]:
        """The second readings by the names of their nodes."""
        found = ((node.name, find_reading(node, self.graph)) for node in self.graph)
        return {name: each for name, each in found if each and (each.first, each.second) == (self.first, self.second)}

    @cached_property
    def finder(self) -> FactorFinder:
        return FactorFinder(self.graph, self.readings, self.first, self.second)

    @cached_property
    def factors(self) -> dict[str, Factor]:
        """The linear maps that can join products, by name."""
        return self.finder.find()

    @cached_property
    def again(self) -> frozenset[Result]:
        """The values of tokens that are computed again along the second reading, from others that are kept."""
        import networkx

        net: networkx.DiGraph[object] = networkx.DiGraph()
        net.add_nodes_from((SOURCE, SINK))
        pending = [each.source for each in self.readings.values()]
        has_places = any(map(self._is_position, pending))
        net.add_edges_from(((each, "kept"), SINK) for each in pending)
        for value in pending:  # the list grows within the loop
            if (value, "made") in net:
                continue
            node, is_free = self.graph[value.node], has_places and self._is_position(value)
            size = 0 if is_free else MOVE * self.finder.count(self.graph.type_of(value).shape)
            net.add_edge((value, "made"), (value, "kept"), capacity=size)
            if node.name not in self.factors and not is_cheap(node, self.graph, self.first):
                net.add_edge(SOURCE, (value, "made"))
                continue
            net.add_edge(SOURCE, node.name, capacity=self._count_cost(node))
            net.add_edge(node.name, (value, "made"))
            sources = [each for each in self.graph.inputs(node.name).values() if self._is_of_tokens(each)]
            net.add_edges_from(((each, "kept"), node.name) for each in sources)
            pending += sources
        _, (_, behind) = networkx.minimum_cut(net, SOURCE, SINK)
        return frozenset(each[0] for each in behind if isinstance(each, tuple) and each[1] == "made")

    def _count_cost(self, node: Node) -> int:
        """The cost of an op whose results are computed again, or of a factor that joins products."""
        if node.name in self.factors:
            return max(1, self.factors[node.name].macs)
        if isinstance(node, OpNode) and isinstance(node.op, VIEWS):
            return 0
        return sum(self.finder.count(type_.shape) for type_ in node.types)

    def _is_of_tokens(self, value: Result) -> bool:
        return find_place(self.graph.type_of(value).shape, self.first) is not None

    def _is_position(self, value: Result) -> bool:
        node = self.graph[value.node]
        return isinstance(node, OpNode) and isinstance(node.op, Positions)


@dataclass
class Rewriter:
    """The rule that reads a graph a second time where it is best.

    `along` has values along the second reading, `joined` the maps of values that join products, `types` new types.
    """

    cut: Cut
    along: dict[Result, Result] = field(default_factory=dict)
    joined: dict[Result, Result] = field(default_factory=dict)
    types: dict[Result, TensorType] = field(default_factory=dict)
    nodes: list[tuple[Node, Inputs]] = field(default_factory=list)  # for the present node

    @cached_property
    def products(self) -> dict[str, tuple[Product, Factor]]:
        """The products that maps join, by name."""
        factors = [each for each in self.cut.factors.values() if Result(each.node.name) in self.cut.again]
        return {product.node.name: (product, factor) for factor in factors for product in factor.products}

    def rewrite(self, node: Node, part: Part) -> Change:
        if part.graph is not self.cut.graph:
            return node
        self.nodes, reading = [], self.cut.readings.get(node.name)
        if node.name in self.products:
            self._join(*self.products[node.name])
            return Built(tuple(self.nodes))
        if reading is None or reading.source not in self.cut.again:
            return node
        factor = next((each for product, each in self.products.values() if product.value == reading.source), None)
        if factor is None:
            value = self._read(reading.source)
        else:
            value = self._read(Result(factor.node.name))
            self._map(reading.source, factor)
        return Built(tuple(self.nodes), moved={Result(node.name): value})

    def _add(self, name: str, op: Op, *operands: Result, index: int = 0) -> Result:
        built, inputs = build_op(name, op, *operands)
        types = op.bind(*(self.types.get(each) or self.cut.graph.type_of(each) for each in operands)).results
        self.types |= {Result(name, at): type_ for at, type_ in enumerate(types)}
        self.nodes.append((built, inputs))
        return Result(name, index)

    def _rename_axes(self, node: OpNode, to: str) -> Op:
        return node.op.with_axes(lambda name: to if name == self.cut.first else name)

    def _read(self, value: Result) -> Result:
        """A value along the second reading, computed from those that are kept; of a factor, what it reads."""
        if value in self.along:
            return self.along[value]
        node, second = self.cut.graph[value.node], self.cut.second
        if value not in self.cut.again:
            rename = Rename(names=(self.cut.first, second))
            name = f"{node.name}~read{f'.{value.index}' if len(node.types) > 1 else ''}"
            self.along[value] = self._add(name, rename, value)
        elif node.name in self.cut.factors:
            factor = self.cut.factors[node.name]
            names = Rename(names=("-1", factor.axis))
            self.along[value] = self._add(f"{node.name}~read", names, self._read(factor.source))
        else:
            assert isinstance(node, OpNode)
            inputs = self.cut.graph.inputs(node.name).values()
            sources = [self._read(each) if self.cut._is_of_tokens(each) else each for each in inputs]
            name = f"{node.name}~along.{second}"
            self._add(name, self._rename_axes(node, second), *sources)
            self.along |= {Result(node.name, at): Result(name, at) for at in range(len(node.types))}
        return self.along[value]

    def _map(self, value: Result, factor: Factor) -> Result:
        """The map whose results are a value: along the axis of the numbers that it reads, then the value's own axes."""
        if value in self.joined:
            return self.joined[value]
        node = self.cut.graph[value.node]
        assert isinstance(node, OpNode)
        name = f"{node.name}~map"
        if node.name != factor.node.name:
            (source,) = self.cut.graph.inputs(node.name).values()
            self._add(name, self._rename_axes(node, factor.axis), self._map(source, factor))
            self.joined |= {Result(node.name, at): Result(name, at) for at in range(len(node.types))}
            return self.joined[value]
        assert isinstance(node.op, Linear)
        weight = self._add(
            f"{name}~weight", Parameter(sizes=(node.op.width, factor.width), names=("", "")), factor.source
        )
        made, inputs = self.nodes[-1]
        owned = replace(made, owner=f"{node.owner}.weight", frozen=node.frozen)  # type: ignore[call-arg]
        self.nodes[-1] = owned, inputs
        turned = self._add(f"{name}~turned", Transpose(axes=()), weight)
        self.joined[value] = self._add(name, Rename(names=("-2", factor.axis)), turned)
        return self.joined[value]

    def _join(self, product: Product, factor: Factor) -> None:
        """Compute a product of what a map reads, and of the map and the other operand."""
        node, graph = product.node, self.cut.graph
        other, wanted = [*graph.inputs(node.name).values()][1 - product.place], node.types[0].shape
        latent, map_ = self.along[Result(factor.node.name)], self.joined[product.value]
        assert isinstance(node.op, Contract)
        sums_tokens = graph.signature(node).axes["over"].name == self.cut.second
        steps = [(Contract(axis=node.op.axis), map_), (Contract(axis=factor.axis), latent)]
        if sums_tokens:
            steps = [(Contract(axis=self.cut.second), latent), (Contract(axis=factor.axis), map_)]
        for at, (op, with_) in enumerate(steps):
            operands = (other, with_) if product.place else (with_, other)
            other = self._add(f"{node.name}~{'first' if at == 0 else 'second'}", op, *operands)
        found = self.types[other].shape
        order = tuple(found.index(axis) - len(found) for axis in wanted)
        if len(order) > 1 and order != (*sorted(order),):
            self._add(node.name, Transpose(axes=order), other)
        else:
            last, inputs = self.nodes[-1]
            self.nodes[-1] = replace(last, name=node.name, owner=node.name), inputs  # type: ignore[call-arg]
