"""Where tokens lie on an image, read from the graph."""

from __future__ import annotations

from dataclasses import dataclass, replace

from modgraph.ir import Graph, InputNode, Node, OpNode, RouteNode
from modgraph.ops.sequence import ClassToken

IMAGE_RANK = 3  # channels, height, width


@dataclass(frozen=True)
class Places:
    """Tokens that are the places of an input image, row by row, after some `in_front` that have no place."""

    image: str
    rows: int
    columns: int
    in_front: int = 0

    @property
    def tokens(self) -> int:
        return self.in_front + self.rows * self.columns

    def behind(self, more: int) -> Places:
        """The same places with more tokens in front."""
        return replace(self, in_front=self.in_front + more)


def places_of_tokens(graph: Graph) -> dict[str, Places]:
    """Places of the tokens that each node yields, by its name, for those whose tokens have any."""
    found: dict[str, Places] = {}
    for node in graph:
        places = _made(graph, node) or _kept(graph, node, found)
        if places is not None:
            found[node.name] = places
    return found


def _made(graph: Graph, node: Node) -> Places | None:
    """The places of tokens that a node makes of an image."""
    if not isinstance(node, OpNode):
        return None
    grid: tuple[int, int] | None = graph.signature(node).axes.call(node.op.grid)
    image = None if grid is None else _image_above(graph, node)
    return Places(image, *grid) if grid is not None and image is not None else None


def _image_above(graph: Graph, node: Node) -> str | None:
    """The one input image that a node depends on."""
    above = (graph[name] for name in sorted(graph.ancestors([node.name])))
    inputs = [each for each in above if isinstance(each, InputNode)]
    images = [each.name for each in inputs if each.types[0].dtype == "float" and len(each.types[0].shape) == IMAGE_RANK]
    return images[0] if len(images) == 1 else None


def _kept(graph: Graph, node: Node, found: dict[str, Places]) -> Places | None:
    """The places of an operand whose axis of tokens the node keeps, or lengthens by tokens in front."""
    if not isinstance(node, OpNode | RouteNode) or not _yields_tokens(graph, node):
        return None
    in_front = int(isinstance(node, OpNode) and isinstance(node.op, ClassToken))
    for source in graph.inputs(node.name).values():
        if source.node in found:
            places = found[source.node].behind(in_front)
            if node.types[0].shape[-2].size == places.tokens:
                return places
    return None


def _yields_tokens(graph: Graph, node: OpNode | RouteNode) -> bool:
    """Whether the axis before the last can be that of tokens."""
    if isinstance(node, RouteNode) and graph.declaration_of(node).one_for_each != "sender":
        return False
    return len(node.types[0].shape) > 1
