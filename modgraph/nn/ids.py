"""Ids: one-hot vectors, rows of an array, and the ids of the largest values. All are int64 tensors."""

from __future__ import annotations

from math import prod

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor

from modgraph.nn.along_axis import AlongAxis
from modgraph.nn.layer import Layer
from modgraph.nn.order import stable_argsort


class ToIds(Layer):
    """Numbers, rounded down and limited to 0 … size − 1, as ids; 0 for what is no number."""

    size: int

    def forward(self, x: Tensor) -> Tensor:
        """x of any shape gives the same shape."""
        found = x.detach().clamp(0, self.size - 1)
        return torch.where(found.isnan(), 0.0, found).floor().long()


class OneHot(Layer):
    """One at the place of an id along a new last axis; a negative id has no place."""

    length: int

    def forward(self, x: Tensor) -> Tensor:
        """Ids of any shape give [..., length]."""
        places = torch.arange(self.length, device=x.device)
        return (x.unsqueeze(-1) == places).to(torch.get_default_dtype())


class Lookup(Layer):
    """Rows of a table by ids along an axis; `aligned` pairs the axes that both have. All axes count from the last.

    `table_rank` and `ids_rank` are the numbers of axes of one example. One table for all examples may have outer axes
    of size 1, or none.
    """

    axis: int
    table_rank: int
    ids_rank: int
    aligned: tuple[tuple[int, int], ...] = ()
    sparse: bool = False  # the gradient of a parameter [n, d]

    def forward(self, table: Tensor, ids: Tensor) -> Tensor:
        """The axes of the ids, then the other axes of the table."""
        own = [each for each, _ in self.aligned]
        rest = [at for at in range(-self.table_rank, 0) if at not in (*own, self.axis)]
        outer = table.dim() - self.table_rank
        if self.sparse and table.is_leaf and table.dim() == 2 and self.axis == -2:
            return F.embedding(ids, table, sparse=True)
        if all(isinstance(size, int) and size == 1 for size in table.shape[:outer]):
            rows = table.reshape(table.shape[outer:]) if outer else table
            return self._find_in_one(rows.permute(*own, self.axis, *rest), ids)
        ids = ids.expand(*table.shape[:outer], *ids.shape[ids.dim() - self.ids_rank :])
        return self._gather(table.permute(*range(outer), *own, self.axis, *rest), ids, outer)

    def _find_in_one(self, rows: Tensor, ids: Tensor) -> Tensor:
        """Look up rows [*aligned, n, *rest] of one table for all examples."""
        many = len(self.aligned)
        sizes, rest = rows.shape[: many + 1], rows.shape[many + 1 :]
        for at, (_, axis) in enumerate(self.aligned):  # rows of the flattened table
            places = torch.arange(sizes[at], device=ids.device) * prod(sizes[at + 1 :])
            ids = ids + places.reshape(-1, *[1] * (-1 - axis))
        flat = rows if many == 0 and len(rest) == 1 else rows.reshape(prod(sizes), prod(rest))
        found = F.embedding(ids, flat) if flat.is_floating_point() else flat[ids]
        return found if len(rest) == 1 else found.reshape(*ids.shape, *rest)

    def _gather(self, rows: Tensor, ids: Tensor, outer: int) -> Tensor:
        """Look up rows [outer, *aligned, n, *rest] of a table of each example by ids [outer, ...]."""
        many = len(self.aligned)
        places = [axis + ids.dim() for _, axis in self.aligned]
        others = [at for at in range(outer, ids.dim()) if at not in places]
        order = [*range(outer), *places, *others]
        ids = ids.permute(order)
        first, inner, rest = ids.shape[: outer + many], ids.shape[outer + many :], rows.shape[outer + many + 1 :]
        at = ids.reshape(*first, prod(inner))
        if rest:
            flat = rows.reshape(*rows.shape[: outer + many + 1], prod(rest))
            found = flat.gather(-2, at.unsqueeze(-1).expand(*at.shape, prod(rest)))
        else:
            found = rows.gather(-1, at)
        found = found.reshape(*first, *inner, *rest)
        back = [order.index(place) for place in range(len(order))]
        return found.permute(*back, *range(len(order), found.dim()))


class TopKIndices(AlongAxis):
    """The ids of the k largest values along an axis, the largest first; of equal values the first is larger."""

    k: int

    def forward(self, x: Tensor) -> Tensor:
        """x of any shape gives k places along the axis."""
        found = _largest(x.detach().movedim(self.axis, -1), self.k)
        return found.movedim(-1, self.axis)


def _largest(x: Tensor, k: int) -> Tensor:
    """The places of the k largest values along the last axis. `topk` alone takes any of equal values."""
    if torch.compiler.is_exporting():  # ONNX TopK takes the first
        return x.topk(k).indices
    least = x.topk(k).values[..., -1:]
    above, level = x > least, x == least
    room = k - above.sum(-1, keepdim=True)
    choice = above | (level & (level.cumsum(-1) <= room))
    size = x.shape[-1]
    places = torch.where(choice, torch.arange(size, device=x.device), size - 1).topk(k, largest=False).values
    return places.gather(-1, stable_argsort(x.gather(-1, places), -1, descending=True))
