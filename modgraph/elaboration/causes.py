"""Finds the likely cause of a misfit: an axis for the batch in an input's type, or a pool that nothing routes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from modgraph.diagnostics import Note
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import Tensor
from modgraph.ir import Graph, InputNode, OpNode, RouteNode, TargetNode
from modgraph.routers.weighted import EveryModule
from modgraph.types import Axis, Misfit

BATCH = ("batch", "batch_size", "batchsize", "bs", "B", "None")
PERHAPS_BATCH = ("N", "n", "b")  # letters that also count tokens or nodes
ONE_EXAMPLE = "types describe one example"


def find_cause(
    misfit: Misfit, tensors: tuple[Tensor, ...], elaborator: Elaborator
) -> tuple[str, tuple[Note, ...]] | None:
    """Return a help line and notes for a misfit of some values; None if its own help stays."""
    axes = {_last_word(axis): axis for tensor in tensors for axis in tensor.type.shape if axis.name}
    batch = next((word for word in (*BATCH, *PERHAPS_BATCH) if word in axes), None)
    if batch is not None and (not misfit.help or re.search(rf"\b{batch}\b", misfit.reason)):
        declared = _drop_axis(axes[batch], elaborator)
        if declared is not None:
            certain = batch in BATCH
            advice = f"{ONE_EXAMPLE}: leave the batch out, {declared}"
            return advice if certain else f'{ONE_EXAMPLE}: if "{batch}" is the batch, leave it out, {declared}', ()
    found = None if misfit.help else next(_find_unrouted(tensors, elaborator.graph), None)
    if found is None:
        return None
    pool = _last_word(elaborator.graph.pool_of(found).axis)
    advice = f"choose modules by a router or by weights, -> {pool} by gate, or average them: -> mean(axis={pool})"
    return advice, (Note(text=f'without "by" every module of "{pool}" runs on each token', span=found.span),)


def drop_axis(declaration: str, word: str) -> str:
    """Return the text of a declaration without an axis of its type: `x: float[batch, 6]` becomes `x: float[6]`."""
    size = rf"\b{word}\b(?:\s*=\s*\w+)?"
    text = re.sub(rf"{size}\s*,\s*|,?\s*{size}(?=\s*\])", "", " ".join(declaration.split()), count=1)
    return text.replace("[]", "")


def _last_word(axis: Axis) -> str:
    return axis.name.rpartition(".")[2]


def _drop_axis(axis: Axis, elaborator: Elaborator) -> str | None:
    """Return the first declaration of an input with an axis, without the axis."""
    graph = elaborator.graphs[0]
    for node in (*graph.nodes_of(InputNode), *graph.nodes_of(TargetNode)):
        if axis in node.types[0].shape and node.span is not None and node.span.text.startswith(("input", "target")):
            return drop_axis(node.span.text, _last_word(axis))
    return None


def _find_unrouted(tensors: tuple[Tensor, ...], graph: Graph) -> Iterator[RouteNode]:
    """Iterate over the uses of pools without `by` that add their axis to one of the values.

    An op that works along the axis only by counting from the last does not take it on purpose.
    """
    ends = [tensor.result.node for tensor in tensors if tensor.result.node in graph]
    above = [graph[name] for name in graph.ancestors(ends)]
    for route in (node for node in above if isinstance(node, RouteNode)):
        declared, axis = graph.declaration_of(route), graph.pool_of(route).axis
        if not isinstance(declared, EveryModule) or declared.rows:
            continue
        removing = [
            node
            for node in above
            if isinstance(node, OpNode)
            and axis not in node.types[0].shape
            and any(axis in operand.shape for operand in graph.signature(node).operands)
        ]
        counted = [node for node in removing if isinstance(node.op.values().get("axis", -2), int)]
        remains = any(axis in tensor.type.shape for tensor in tensors)
        if (remains and not all(axis in tensor.type.shape for tensor in tensors)) or (counted and not remains):
            yield route
