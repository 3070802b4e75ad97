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


def places_of_tokens(graph: Graph) -> dict[str, Places]:
    """Places of the tokens that each node yields, by its name, for those whose tokens have any."""
    found: dict[str, Places] = {}
    for node in graph:
        places = _made(graph, node) or _kept(graph, node, found)
        if places is not None:
            found[node.name] = places
    return found


def _made(graph: Graph, node: Node) -> Places | None:
    """The places of tokens that a node makes of the one input image that it depends on."""
    grid: tuple[int, int] | None = graph.signature(node).axes.call(node.op.grid) if isinstance(node, OpNode) else None
    if grid is None:
        return None
    above = (graph[name] for name in graph.ancestors([node.name]))
    types = {each.name: each.types[0] for each in above if isinstance(each, InputNode)}
    images = [name for name, type_ in types.items() if type_.dtype == "float" and len(type_.shape) == IMAGE_RANK]
    return Places(images[0], *grid) if len(images) == 1 else None


def _kept(graph: Graph, node: Node, found: dict[str, Places]) -> Places | None:
    """The places of an operand whose axis of tokens the node keeps, or lengthens by tokens in front."""
    if not isinstance(node, OpNode | RouteNode) or len(node.types[0].shape) < 2:
        return None
    if isinstance(node, RouteNode) and graph.declaration_of(node).one_for_each != "sender":
        return None
    in_front = int(isinstance(node, OpNode) and isinstance(node.op, ClassToken))
    for source in graph.inputs(node.name).values():
        if source.node in found:
            places = replace(found[source.node], in_front=found[source.node].in_front + in_front)
            if node.types[0].shape[-2].size == places.tokens:
                return places
    return None
