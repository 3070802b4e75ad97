"""Products of three matrices in the cheaper order: u · (W x) = (u W) · x.

If only products read W x, and W widens x, then W x need not be computed. If they are cosines of W x + b, the norm
|W x + b|² = xᵀ (Wᵀ W) x + 2 (b W) · x + b · b divides them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from modgraph.ir import Built, Change, Graph, Node, OpNode, Part, Result, batch_invariant, build_op, rewrite_graph
from modgraph.ops.along_axis import Sum, Unit
from modgraph.ops.arithmetic import Add, Divide, Multiply
from modgraph.ops.axes import Transpose
from modgraph.ops.compared import Maximum
from modgraph.ops.elementwise import Sqrt
from modgraph.ops.linear import Contract
from modgraph.passes.infrastructure import Pass
from modgraph.types import Shape

LONG = 64  # the assumed length of a padded axis
SMALL = 1e-16  # the square of the smallest norm that divides a vector


@dataclass(frozen=True)
class Image:
    """The image W x of a learned map, perhaps with + b, perhaps normalised; and the products, its only readers.

    `macs` are the multiply-accumulates for an example before and after. Products of weights run once for all examples
    and do not count.
    """

    last: OpNode
    x: Result
    weight: Result
    bias: Result | None
    products: tuple[OpNode, ...]
    macs: tuple[int, int]

    @property
    def unit(self) -> bool:
        return isinstance(self.last.op, Unit)

    @property
    def reason(self) -> str:
        before, after = self.macs
        return f"not computed, since its products are cheaper in another order: {after:,} MACs instead of {before:,}"


@dataclass(frozen=True)
class Reassociate(Pass):
    """Compute products of three matrices in the cheaper order; dead nodes stay for `Prune`."""

    name: ClassVar[str] = "reassociate"

    def __call__(self, graph: Graph) -> Graph:
        found = images(graph)
        ends = {image.last.name: image for image in found}
        readers = {product.name: image for image in found for product in image.products}

        def rule(node: Node, part: Part) -> Change:
            if part.graph is not graph or not isinstance(node, OpNode):
                return node
            if node.name in ends:
                return Built(((node, graph.inputs(node.name)), *_prepare(ends[node.name])))
            return Built(tuple(_product(node, readers[node.name], graph))) if node.name in readers else node

        return rewrite_graph(graph, rule) if found else graph


def images(graph: Graph) -> list[Image]:
    """The images that need not be computed. Images in scans stay: Wᵀ W would be computed at each step."""
    once = batch_invariant(graph)
    found = (_image(node, graph, once) for node in graph.nodes_of(OpNode) if isinstance(node.op, Contract))
    return [image for image in found if image is not None and image.macs[1] < image.macs[0]]


def _image(node: OpNode, graph: Graph, once: Set[str]) -> Image | None:
    x, weight = graph.inputs(node.name).values()
    if node.name in once or weight.node not in once or not _is_over_last_axes(node, graph):
        return None
    shape, learned = graph.type_of(x).shape, graph.type_of(weight).shape
    if len(learned) != 2 or any(axis.name for axis in learned) or not all(axis.name for axis in shape[:-1]):
        return None
    last, bias = node, None
    while len(users := graph.users(last.name)) == 1 and isinstance(user := graph[users[0]], OpNode):
        others = [each for each in graph.inputs(user.name).values() if each != Result(last.name)]
        if isinstance(user.op, Add) and bias is None and len(others) == 1 and _is_bias(others[0], graph, once):
            last, bias = user, others[0]
        elif isinstance(user.op, Unit) and graph.signature(user).axes["position"] == -1:
            last = user
            break
        else:
            break
    products = [graph[name] for name in graph.users(last.name)]
    read = [each for each in products if isinstance(each, OpNode) and _reads(each, last, graph)]
    if not read or len(read) < len(products):
        return None
    macs = _macs(shape, learned, read, last, graph, once)
    return Image(last, x, weight, bias, tuple(read), macs)


def _is_over_last_axes(node: OpNode, graph: Graph) -> bool:
    """Whether a contraction is over the last axes of both operands."""
    left, right = (graph.type_of(each).shape for each in graph.inputs(node.name).values())
    axis = node.op.axis  # type: ignore[attr-defined]
    return bool(axis == -1 or left[-1].name == right[-1].name == axis)


def _is_bias(result: Result, graph: Graph, once: Set[str]) -> bool:
    shape = graph.type_of(result).shape
    return result.node in once and len(shape) == 1 and not shape[0].name


def _reads(node: OpNode, image: OpNode, graph: Graph) -> bool:
    """Whether a node is a product of an image and another value whose outer axes all have names."""
    if not isinstance(node.op, Contract) or not _is_over_last_axes(node, graph):
        return False
    others = [each for each in graph.inputs(node.name).values() if each.node != image.name]
    types = [graph.type_of(each) for each in others]
    return len(types) == 1 and types[0].per == "example" and all(axis.name for axis in types[0].shape[:-1])


def _macs(
    x: Shape, weight: Shape, products: list[OpNode], image: OpNode, graph: Graph, once: Set[str]
) -> tuple[int, int]:
    tokens, (width, narrow) = _count(x[:-1]), map(_long, weight)
    before, after = tokens * width * narrow, tokens * narrow**2 * isinstance(image.op, Unit)
    for product in products:
        (other,) = (each for each in graph.inputs(product.name).values() if each.node != image.name)
        made = _count(product.types[0].shape)
        before += made * width
        after += made * narrow + (0 if other.node in once else _count(graph.type_of(other).shape) * narrow)
    return before, after


def _count(shape: Shape) -> int:
    return prod(map(_long, shape))


def _long(axis: Any) -> int:
    return LONG if axis.size is None else int(axis.size)


Nodes = Iterator[tuple[OpNode, Mapping[str, Result]]]  # with "~" in their names, which no name of a spec has


def _prepare(image: Image) -> Nodes:
    """The nodes that all products of an image share: the transposed map, and the inverse norm of each vector."""
    at = f"{image.last.name}~"
    turned = Result(f"{at}turned")
    yield build_op(turned.node, Transpose(axes=()), image.weight)
    if not image.unit:
        return
    yield build_op(f"{at}gram", Contract(), turned, turned)
    yield build_op(f"{at}along", Contract(), image.x, Result(f"{at}gram"))
    along = Result(f"{at}along")
    if image.bias is not None:
        yield build_op(f"{at}moved", Contract(), turned, image.bias)
        yield build_op(f"{at}twice", Multiply(left=2.0, right=None), Result(f"{at}moved"))
        yield build_op(f"{at}along_all", Add(left=None, right=None), along, Result(f"{at}twice"))
        along = Result(f"{at}along_all")
    yield build_op(f"{at}each", Multiply(left=None, right=None), along, image.x)
    yield build_op(f"{at}squared", Sum(axis=-1), Result(f"{at}each"))
    squared = Result(f"{at}squared")
    if image.bias is not None:
        yield build_op(f"{at}bias", Contract(), image.bias, image.bias)
        yield build_op(f"{at}squared_all", Add(left=None, right=None), squared, Result(f"{at}bias"))
        squared = Result(f"{at}squared_all")
    yield build_op(f"{at}least", Maximum(right=SMALL), squared)
    yield build_op(f"{at}length", Sqrt(), Result(f"{at}least"))
    yield build_op(f"{at}inverse", Divide(left=1.0, right=None), Result(f"{at}length"))


def _product(node: OpNode, image: Image, graph: Graph) -> Nodes:
    """The nodes of a product in the other order; the last has the name of the old node."""
    of_image, at = f"{image.last.name}~", f"{node.name}~"
    left, right = graph.inputs(node.name).values()
    other = right if left.node == image.last.name else left
    back = Result(f"{at}back")
    names = [f"{at}product", *[f"{at}added"] * (image.bias is not None), *[f"{at}scaled"] * image.unit]
    names[-1] = node.name
    yield build_op(back.node, Contract(), other, Result(f"{of_image}turned"))
    yield build_op(names[0], Contract(), *((image.x, back) if other == right else (back, image.x)))
    if image.bias is not None:
        yield build_op(f"{at}bias", Contract(), other, image.bias)
        yield build_op(names[1], Add(left=None, right=None), Result(names[0]), Result(f"{at}bias"))
    if image.unit:
        yield build_op(names[-1], Multiply(left=None, right=None), Result(names[-2]), Result(f"{of_image}inverse"))
