"""Linear maps that can join products: q · (W c) = (Wᵀ q) · c, and Σ g (W c) = W Σ g c."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from modgraph.declare import Declaration
from modgraph.ir import Graph, Result
from modgraph.ir.node import Node, OpNode
from modgraph.ops.axes import Transpose, Unmerge
from modgraph.ops.elementwise import Identity
from modgraph.ops.linear import Contract, Linear
from modgraph.ops.shape import Rename, Split
from modgraph.passes.extents import COUNTING
from modgraph.passes.sink import Reading, find_place, reads_own_place
from modgraph.types import Axis

LONG = 64  # the assumed length of a further axis of any length
VIEWS = (Unmerge, Split, Transpose, Rename, Identity)  # arrange numbers


@dataclass(frozen=True)
class Product:
    """A product that reads a map: the value of tokens that it reads a second time, and the place of this operand."""

    node: OpNode
    value: Result
    place: int


@dataclass(frozen=True)
class Factor:
    """A linear map of `width` numbers of a token, whose results only products read.

    `macs` are the additional multiply-accumulates of the products for each token and query if the map joins them.
    """

    node: OpNode
    source: Result
    width: int
    products: tuple[Product, ...]
    macs: int

    @property
    def axis(self) -> str:
        """The name of the axis of these numbers."""
        return f"{self.node.owner}.latent"


def is_cheap(node: Node, graph: Graph, axis: str) -> bool:
    """Whether an op works on each token by itself, without weights and products."""
    if not isinstance(node, OpNode) or isinstance(node.op, COUNTING) or node.op.by_chance or node.op.over_batch:
        return False
    has_axis = all(find_place(type_.shape, axis) is not None for type_ in node.types)
    is_free = not node.op.all_weights() and type(node.op).macs is Declaration.macs
    return has_axis and is_free and reads_own_place(node.op, graph.signature(node), axis)


@dataclass(frozen=True)
class FactorFinder:
    """Finds the factors of a graph along the second readings, by their names, of an axis of tokens."""

    graph: Graph
    readings: Mapping[str, Reading]
    first: str
    second: str

    def find(self) -> dict[str, Factor]:
        """The factors by name."""
        maps = [node for node in self.graph.nodes_of(OpNode) if isinstance(node.op, Linear)]
        return {node.name: found for node in maps if (found := self._read(node)) is not None}

    def count(self, shape: Iterable[Axis]) -> int:
        """The numbers of a value for each token."""
        return prod(axis.size or LONG for axis in shape if axis.name not in (self.first, self.second))

    def _read(self, node: OpNode) -> Factor | None:
        op, (source,) = node.op, self.graph.inputs(node.name).values()
        shape = self.graph.type_of(source).shape
        if not isinstance(op, Linear) or op.bias or op.named or [axis.name for axis in shape] != [self.first, ""]:
            return None
        nodes = (each for part in self.graph.parts() for each in part.graph.nodes_of(OpNode))
        width, products = shape[1].size or 0, self._list_products(node)
        if not products or sum(each.owner == node.owner for each in nodes) > 1:
            return None
        return Factor(node, source, width, products, sum(self._count_macs(each, width) for each in products))

    def _list_products(self, node: OpNode) -> tuple[Product, ...]:
        """List the products that read an op through others that arrange numbers; none if something else reads it."""
        found = list[Product]()
        for user in self.graph.users_of(node.name):
            reads: tuple[Product, ...] = ()
            if user.name in self.readings:
                reads = self._list_readers(user.name)
            elif isinstance(user, OpNode) and isinstance(user.op, VIEWS) and is_cheap(user, self.graph, self.first):
                reads = self._list_products(user)
            if not reads:
                return ()
            found += reads
        return tuple(found)

    def _list_readers(self, reading: str) -> tuple[Product, ...]:
        """List the products that read a second reading; none if something else does."""
        users = self.graph.users_of(reading)
        found = [each for user in users if (each := self._find_product(user, reading)) is not None]
        return tuple(found) if len(found) == len(users) else ()

    def _find_product(self, node: Node, reading: str) -> Product | None:
        """A product with a second reading as an operand, if its order can change."""
        if not isinstance(node, OpNode) or not isinstance(node.op, Contract):
            return None
        operands = [*self.graph.inputs(node.name).values()]
        places = [at for at, each in enumerate(operands) if each.node == reading]
        if len(places) != 1 or len({*node.types[0].shape}) < len(node.types[0].shape):
            return None
        has_axis = find_place(self.graph.type_of(operands[1 - places[0]]).shape, self.second) is not None
        sums_tokens = self.graph.signature(node).axes["over"].name == self.second
        return Product(node, self.readings[reading].source, places[0]) if has_axis == sums_tokens else None

    def _count_macs(self, product: Product, width: int) -> int:
        """The additional multiply-accumulates of a product for each token and query."""
        node, over = product.node, self.graph.signature(product.node).axes["over"]
        other, made = [*self.graph.inputs(node.name).values()][1 - product.place], self.count(node.types[0].shape)
        if over.name == self.second:
            return self.count(self.graph.type_of(other).shape) * width - made
        return made * (width - (over.size or LONG))
