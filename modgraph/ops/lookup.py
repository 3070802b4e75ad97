"""Rows of an array, looked up by id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from modgraph.declare import Operand, Signature, format_count, own_module, position_of, setting
from modgraph.declare.indexing import Indexing, Reading, Use, everywhere, move_axes, place_at
from modgraph.ops.op import Op
from modgraph.ops.zeros import ANYWHERE, Bounds, Propagated, move_bound
from modgraph.types import Axes, Axis, Misfit, TensorType, format_shape, may_meet, require_distinct

SPARSE = (
    "give a weight [n, d] a sparse gradient, of the rows that were read; a training uses it where one process trains "
    "by sgd without momentum, weight decay, clipping and compilation"
)
COUNTED = "the axis of the array that the ids count; the first that is no named axis of the ids if not given"


class Lookup(
    Op, name="lookup", synonyms="gather take index_select take_along_dim take_along_axis embedding_lookup gather_nd"
):
    """The rows of an array at given ids: `(table, words) -> lookup` of float[1000, 8] and token[time, 1000] is
    float[time, 8].

    The array is a weight, a constant, or any value of each example, of floats or of ids. The ids count places along
    `axis`. Named axes that both have are aligned, as in `contract`, and plain axes before `axis` with plain axes of the
    ids, in order. The result has the axes of the ids, then the other axes of the array.
    """

    nondifferentiable = ("ids",)
    example = "input x: token[5, 11] weight w: float[11, 3] = normal(1.0) y = (w, x) -> lookup output y"
    operands = (Operand("table", "..."), Operand("ids", "...", dtype="id"))
    module = own_module("position", "table_rank", "ids_rank", "aligned", sparse="sparse")
    broadcasts = True
    taken_as_is = (1,)

    axis: int | str | None = setting(None, max=-1, axis=True, doc=COUNTED)
    sparse: bool = setting(False, doc=SPARSE)

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        if len(found) != 2:
            advice = "write (table, ids) -> lookup"
            raise Misfit(f"it takes an array and ids, not {format_count(len(found), 'operand')}", advice)
        table, ids = found
        if ids.size is None:
            advice = "ids are token or class values, such as the result of top_k_indices"
            raise Misfit(f"it looks up by ids, not by {ids}", advice, 1)
        position = self._find_position(table, ids)
        self._check_count(table.shape[position], ids)
        aligned = tuple(_align_before(position, table, ids))
        axes.bound |= {"position": position, "aligned": aligned}
        axes.bound |= {"table_rank": len(table.shape), "ids_rank": len(ids.shape)}
        moved = {at for at, _ in aligned} | {position}
        rest = [axis for at, axis in enumerate(table.shape, -len(table.shape)) if at not in moved]
        shape = require_distinct((*ids.shape, *rest))
        over_batch = all(type_.per == "batch" for type_ in found)
        dtype: Any = "token" if table.size is not None else "float"
        return (TensorType(dtype, shape, table.size, "batch" if over_batch else "example"),)

    def _find_position(self, table: TensorType, ids: TensorType) -> int:
        """Find the place of the axis that the ids count: by default the first that is no named axis of the ids."""
        if self.axis is not None:
            return position_of(self.axis, table, self.name)
        own = (at for at, axis in enumerate(table.shape) if ids.position(axis.name) is None or not axis.name)
        position = next(own, None)
        if position is None:
            raise Misfit(
                f"all axes of {table} are axes of the ids", "name the axis that they count: lookup(axis=-1)", 0
            )
        return position - len(table.shape)

    def _check_count(self, axis: Axis, ids: TensorType) -> None:
        assert ids.size is not None, "ids have a number"
        if axis.size is None:
            reason = f'examples differ in their length along "{axis}", so an id may have no row'
            raise Misfit(reason, "name another axis: lookup(axis=-1)", 0)
        if ids.size > axis.size:
            advice = f"give the array {ids.size} rows, or divide the ids: % {axis.size}"
            raise Misfit(f"ids below {ids.size} look up {axis.size} rows", advice, 1)

    def indexing(self, use: Use) -> Indexing:
        """A row is anywhere along the counted axis."""
        (table, ids), axes = use.shapes, use.signature.axes
        moved = {at for at, _ in axes["aligned"]} | {axes["position"]}
        rest = [at for at in range(-len(table), 0) if at not in moved]
        places = {at: place_at(to - len(rest)) for at, to in axes["aligned"]}
        places[axes["position"]] = everywhere(table[axes["position"]])
        places |= {at: place_at(number - len(rest)) for number, at in enumerate(rest)}
        rows = tuple(places[at] for at in range(-len(table), 0))
        return ((Reading(0, rows), Reading(1, move_axes(ids, lambda axis: axis - len(rest)))),)

    def propagate(self, signature: Signature, known: Bounds) -> Propagated:
        bound, axes = known[0], signature.axes
        if bound is None:
            return None
        moved = {at for at, _ in axes["aligned"]} | {axes["position"]}
        if bound.place is None or bound.place in moved:
            return self, ANYWHERE
        return self, move_bound(bound, lambda place: place + sum(at > place for at in moved))


def _align_before(position: int, table: TensorType, ids: TensorType) -> Iterator[tuple[int, int]]:
    """Iterate over the places, from the last, of an axis of the array and of the axis of the ids that it is.

    Raises `Misfit` for a plain axis before the one that the ids count which is no axis of the ids.
    """
    plain = (at for at, axis in enumerate(ids.shape) if not axis.name)
    for place, axis in enumerate(table.shape, -len(table.shape)):
        at = ids.position(axis.name) if axis.name else next(plain, None) if place < position else None
        if place == position or (at is None and (axis.name or place > position)):
            continue
        if at is None or not may_meet(axis, ids.shape[at]):
            reason = f"{format_shape(ids.shape)} lacks {axis}, which stands before the axis that the ids count"
            raise Misfit(reason, "give that axis a name, or let the ids count the first: lookup(axis=…)", 1)
        yield place, at - len(ids.shape)
