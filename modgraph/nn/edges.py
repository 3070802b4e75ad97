"""Edges as data: values at their ends, and reductions over the edges of each node.

Edges [B, E, 2] are pairs of places of nodes, of a source and a target. Nodes of all examples stand in one row, so an
edge of example b at node i has the number b·N + i there; edges of padding lead to a further node that is left out.
Letters name axes as in an einsum equation: `z` is the axis of examples, `e` that of edges or nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from modgraph.nn.layer import Layer
from modgraph.nn.padding import apply_mask
from modgraph.nn.weighted import align_axes

Counted = int | tuple[int, int]  # the number of nodes, or the operand that has their axis and its place
Masks = tuple[Tensor | None, ...]


def number_ends(edges: Tensor, end: int, nodes: int) -> Tensor:
    """The number of the node at one end of each edge [B·E], for B examples of so many nodes."""
    ids = edges.select(-1, end)
    first = torch.arange(ids.shape[0], device=ids.device) * nodes
    return (ids + first.unsqueeze(-1)).flatten()


def number_receivers(edges: Tensor, end: int, nodes: int, mask: Tensor | None) -> Tensor:
    """As `number_ends`; an edge of padding gets the number after the last node."""
    found = number_ends(edges, end, nodes)
    return found if mask is None else found.masked_fill(~mask.flatten(), edges.shape[0] * nodes)


def count_nodes(counted: Counted, operands: Sequence[Tensor]) -> int:
    """The number of nodes of an example, with padding."""
    return counted if isinstance(counted, int) else operands[counted[0]].shape[counted[1]]


def split_rows(x: Tensor, edges: Tensor, nodes: int | None = None) -> Tensor:
    """Split rows by example [B, N, ...], for so many nodes, or for the edges [B, E, 2]."""
    return x.reshape(edges.shape[0], edges.shape[1] if nodes is None else nodes, *x.shape[1:])


def sum_at(values: Tensor, receivers: Tensor, nodes: int) -> Tensor:
    """Sum rows of values [E, ...] by receiver: [nodes, ...]."""
    return values.new_zeros(nodes, *values.shape[1:]).index_add(0, receivers, values)


def largest_at(values: Tensor, receivers: Tensor, nodes: int) -> Tensor:
    """The largest rows of values [E, ...] by receiver: [nodes, ...], −∞ without edges."""
    flat = values.flatten(1) if values.dim() > 1 else values.unsqueeze(-1)
    places = receivers.unsqueeze(-1).expand(-1, flat.shape[1])
    least = flat.new_full((nodes, flat.shape[1]), float("-inf"))
    return least.scatter_reduce(0, places, flat, "amax").reshape(nodes, *values.shape[1:])


class AtEnd(Layer):
    """Values of nodes at one end of each edge; `position` is that of their axis, counted from the last."""

    position: int
    end: int

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """x [B, ..., N, ...] and edges [B, E, 2] give [B, ..., E, ...]."""
        x = x.movedim(self.position, 1)
        found = x.flatten(0, 1).index_select(0, number_ends(edges, self.end, x.shape[1]))
        return split_rows(found, edges).movedim(1, self.position)


class AtSource(AtEnd):
    """Values at the source of each edge."""


class AtTarget(AtEnd):
    """Values at the target of each edge."""


class EdgeScatter(Layer):
    """Sends messages along edges and reduces them at each node, which gets zero without edges.

    `values`, `weights` and `result` are the letters of their axes. A value that `reads` has the axis of nodes, and is
    read at the end of each edge that is not `end`.
    """

    values: str
    result: str
    end: int
    reads: bool
    counted: Counted
    weights: str = ""
    reduce: str = "sum"

    def forward(self, x: Tensor, edges: Tensor, *others: Tensor, mask: Masks | None = None) -> Tensor:
        """x and edges [B, E, 2] give the axes of `result`, with nodes in place of edges."""
        nodes = count_nodes(self.counted, (x, edges, *others))
        receivers = number_receivers(edges, self.end, nodes, None if mask is None else mask[1])
        values = order_rows(x, self.values, self.result)
        if self.reads:
            origins = number_ends(edges, 1 - self.end, values.shape[1])
            messages = values.flatten(0, 1).index_select(0, origins)
        else:
            messages = values.flatten(0, 1)
        if self.weights:
            messages = messages * order_rows(others[0], self.weights, self.result).flatten(0, 1)
        found = self.total(messages, receivers, edges.shape[0] * nodes)
        return restore_rows(split_rows(found, edges, nodes), self.result)

    def total(self, messages: Tensor, receivers: Tensor, nodes: int) -> Tensor:
        """Reduce messages [E, ...] at each of so many nodes."""
        if self.reduce == "sum":
            return sum_at(messages, receivers, nodes + 1)[:nodes]
        count = sum_at(torch.ones_like(receivers), receivers, nodes + 1)[:nodes]
        count = count.reshape(-1, *[1] * (messages.dim() - 1))
        if self.reduce == "mean":
            return sum_at(messages, receivers, nodes + 1)[:nodes] / count.clamp(min=1)
        return apply_mask(largest_at(messages, receivers, nodes + 1)[:nodes], count > 0)


def order_rows(x: Tensor, letters: str, result: str) -> Tensor:
    """Permute x [B, ...] to the axes of a result, that of edges or nodes first; axes that it lacks get length 1."""
    return align_axes(x, f"z{letters}", f"ze{result.replace('e', '')}")


def restore_rows(x: Tensor, result: str) -> Tensor:
    """Put the axis of nodes, the first of each example, at its place in a result."""
    return x.movedim(1, 1 + result.index("e"))


PAIRS = 24  # matrices are faster on a CPU where more than one in so many pairs of nodes is joined
FEW = 4096  # edges of a batch that take less time than message passing takes to begin


def are_dense(x: Tensor, edges: Tensor, origins: int, nodes: int) -> bool:
    """Whether a matrix over all pairs of nodes is faster than the edges [B, E, 2] by themselves.

    On a CPU, values x that are not finite go along edges alone; elsewhere that would be a wait.
    """
    if torch.compiler.is_exporting() or PAIRS * edges.shape[1] < origins * nodes:
        return False
    return not (_can_wait(x) and x.detach().sum().isfinite().logical_not())


def _can_wait(x: Tensor) -> bool:
    return x.device.type == "cpu" and not torch.compiler.is_compiling()


def sum_by_matrices(
    x: Tensor,
    edges: Tensor,
    weights: Tensor | None,
    mask: Tensor | None,
    letters: tuple[str, str, str],
    end: int,
    nodes: int,
) -> Tensor:
    """Σ w x over the edges [B, E, 2] of each node, as a product with a matrix over all pairs of nodes for each example.

    `letters` are the axes of x, of the weights and of the result. Where x is not known to be finite, nodes that send
    nothing count as zero, so that no infinity in padding is multiplied.
    """
    of_x, of_weights, result = (each.replace("e", "") for each in letters)
    values = x.movedim(1 + letters[0].index("e"), 1)
    own = values.new_ones(edges.shape[:2]) if weights is None else weights.movedim(1 + letters[1].index("e"), 1)
    counts = None if mask is None else mask.reshape(edges.shape[:2])
    own = apply_mask(own, None if counts is None else _align(counts, own))
    origins = edges.select(-1, 1 - end)
    if not _can_wait(x):
        joins = torch.ones_like(origins) if counts is None else counts.to(origins.dtype)
        sends = joins.new_zeros(values.shape[:2]).scatter_add_(1, origins, joins) > 0
        values = apply_mask(values, _align(sends, values))
    pairs = torch.add(origins, edges.select(-1, end), alpha=values.shape[1])
    joined = own.new_zeros(edges.shape[0], nodes * values.shape[1], *own.shape[2:])
    joined = joined.scatter_add_(1, _align(pairs, own).expand_as(own), own)
    joined = joined.reshape(edges.shape[0], nodes, values.shape[1], *own.shape[2:])
    found = torch.einsum(f"zTS{of_weights},zS{of_x}->zT{result}", joined, values)
    return restore_rows(found, letters[2])


def _align(x: Tensor, other: Tensor) -> Tensor:
    """Append axes of length 1 to x, up to the rank of another value."""
    return x.reshape(*x.shape, *[1] * (other.dim() - x.dim()))


class EdgeSoftmax(Layer):
    """A softmax over the edges of each node along an axis, counted from the last; zero for edges of padding."""

    position: int
    end: int
    counted: Counted

    def forward(self, scores: Tensor, edges: Tensor, *others: Tensor, mask: Masks | None = None) -> Tensor:
        """Scores [B, ..., E, ...] give the same shape."""
        nodes = count_nodes(self.counted, (scores, edges, *others))
        own = None if mask is None else mask[1]
        receivers, total = number_receivers(edges, self.end, nodes, own), edges.shape[0] * nodes + 1
        flat = scores.movedim(self.position, 1).flatten(0, 1)
        weights = (flat - largest_at(flat.detach(), receivers, total).index_select(0, receivers)).exp()
        gates = weights / sum_at(weights, receivers, total).index_select(0, receivers)
        found = split_rows(gates, edges).movedim(1, self.position)
        return found if mask is None else apply_mask(found, mask[0])


class Degree(Layer):
    """The number of edges of each node at one end."""

    end: int
    counted: Counted

    def forward(self, edges: Tensor, *others: Tensor, mask: Masks | None = None) -> Tensor:
        """Edges [B, E, 2] give [B, N]."""
        nodes = count_nodes(self.counted, (edges, *others))
        receivers = number_receivers(edges, self.end, nodes, None if mask is None else mask[0])
        floats = next((x.dtype for x in others if x.is_floating_point()), torch.get_default_dtype())
        ones = torch.ones(receivers.shape, dtype=floats, device=edges.device)
        return split_rows(sum_at(ones, receivers, edges.shape[0] * nodes + 1)[:-1], edges, nodes)
