"""The size in which a spec wants its images."""

from __future__ import annotations

from modgraph.data.errors import DataDoesNotFit
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph


def shape_of_grey_images(graph: Graph) -> tuple[int, int, int]:
    """Channels, height and width of the input `image` for grey images: one channel, or three alike. Raises as below."""
    type_ = graph.input_types.get("image")
    return shape_of_images(graph, 3 if type_ is not None and type_.dimensions[:1] == (3,) else 1)


def shape_of_images(graph: Graph, channels: int) -> tuple[int, int, int]:
    """Channels, height and width of the input `image`. Raises `ModgraphError` if it cannot hold these images."""
    type_ = graph.input_types.get("image")
    if type_ is not None and type_.dtype == "float":
        match type_.dimensions:
            case (int(found), int(height), int(width)) if found == channels:
                return found, height, width
    given = "no such input" if type_ is None else str(type_)
    way_out = f"declare: input image: float[{channels}, HEIGHT, WIDTH]"
    reason = f'the input "image" is to be float[{channels}, height, width]; the spec has {given}'
    raise ModgraphError([DataDoesNotFit(reason=reason, way_out=way_out)])
