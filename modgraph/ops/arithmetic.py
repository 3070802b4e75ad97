"""Arithmetic between values, and between a value and a constant.

Operands broadcast. Axes align by name in any order, unnamed ones from the last. An operand repeats along axes that it
lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

from modgraph.declare import Signature, TorchModule, format_count, setting
from modgraph.declare.indexing import read_pointwise
from modgraph.ops.op import Op
from modgraph.ops.zeros import ANYWHERE, Bounds, Propagated, either_bound
from modgraph.types import (
    Axes,
    Misfit,
    Shape,
    TensorType,
    align_axes,
    broadcast,
    find_repeated,
    format_shape,
    join_axes,
)

MOST_IDS = 2**62


@dataclass(frozen=True)
class Alignment:
    """How one operand of arithmetic broadcasts: the places of its axes in the result, counted from the last.

    `order` lists its axes in the order of the result, counted from the last, or none where that is its own order.
    `lacks` lists the axes of the result that it lacks, counted from the last.
    """

    places: tuple[int, ...]
    order: tuple[int, ...]
    lacks: tuple[int, ...]

    @classmethod
    @cache
    def from_positions(cls, positions: tuple[int, ...], rank: int) -> Alignment:
        """Describe an operand whose axes are at these positions of a result."""
        own = range(-len(positions), 0)
        order = sorted(own, key=positions.__getitem__)
        lacks = tuple(at - rank for at in range(rank) if at not in positions)
        return cls(tuple(at - rank for at in positions), () if order == [*own] else tuple(order), lacks)


def align(found: tuple[TensorType, ...], sign: str) -> tuple[TensorType, tuple[Alignment, ...]]:
    """Broadcast the types of some values; return the type of the result, and how each value broadcasts to it.

    Raises `Misfit` if they do not broadcast; `sign` is the operator or op.
    """
    for at, type_ in enumerate(found):
        if type_.dtype != "float":
            raise Misfit(f"arithmetic is for float values, not {type_}", "", at)
    shapes = [type_.shape for type_ in found]
    whole, positions = _align_in_order(shapes) or _align_by_name(shapes, sign)
    over_batch = all(type_.per == "batch" for type_ in found)
    result = TensorType("float", whole, per="batch" if over_batch else "example")
    return result, tuple(Alignment.from_positions(each, len(whole)) for each in positions)


def align_within(found: TensorType, outer: TensorType, who: str, what: str, at: int) -> Alignment:
    """How an operand broadcasts to a type that has all its axes. Raises `Misfit`."""
    try:
        whole, (_, alignment) = align((outer, found), who)
    except Misfit:
        whole = None
    if whole is None or len(whole.shape) != len(outer.shape):
        reason = f"{what} {format_shape(found.shape)} has other axes than {format_shape(outer.shape)}"
        raise Misfit(reason, f"give it those of {format_shape(outer.shape)}, or some of them", at)
    return alignment


Aligned = tuple[Shape, list[tuple[int, ...]]]  # the axes of the result, and the positions of each operand's in it


def _align_in_order(shapes: Sequence[Shape]) -> Aligned | None:
    """Align values whose axes have one order; None if that is not so."""
    whole = shapes[0]
    for each in shapes[1:]:
        if each == whole:
            continue
        inner, outer = sorted((whole, each), key=len)
        positions = align_axes(inner, outer)
        if positions is None:
            return None
        joined = list(outer)
        for axis, at in zip(inner, positions, strict=True):
            joined[at] = broadcast(joined[at], axis)
        whole = tuple(joined)
    found = [positions for each in shapes if (positions := align_axes(each, whole)) is not None]
    return (whole, found) if len(found) == len(shapes) and find_repeated(whole) is None else None


def _align_by_name(shapes: Sequence[Shape], sign: str) -> Aligned:
    """Align values by the names of their axes. Raises `Misfit` if two do not fit together."""
    whole, found = shapes[0], [tuple(range(len(shapes[0])))]
    for each in shapes[1:]:
        joined = join_axes(whole, each)
        if joined is None:
            under = "" if sign.isidentifier() else f' under "{sign}"'
            reason = f"the shapes {format_shape(whole)} and {format_shape(each)} do not fit together{under}"
            raise Misfit(reason, _way_out(whole, each))
        found = [*(tuple(joined.left[at] for at in positions) for positions in found), joined.right]
        whole = joined.shape
    return whole, found


def _way_out(left: Shape, right: Shape) -> str:
    """Return the help for two values that fit except for the names of their axes."""
    for at, (one, other) in enumerate(zip(reversed(left), reversed(right), strict=False)):
        if one.size == other.size and one.name != other.name and one.name and other.name:
            said = f'"{one.name}" and "{other.name}" are axes of unlike things; if the same is meant: '
            if one.is_padded:
                meant = f'give them one name where they are declared; for all pairs: (a, b) -> expand("{other.name}"'
                return f"{said}{meant}, at={-1 - at})"
            if "." in one.name + other.name:
                return f"{said}rename one"
            pairs = f'new_axis({other.size}, axis="{other.name}", at={-1 - at})'
            return f'{said}-> rename({other.name}="{one.name}"); for all pairs: -> {pairs}'
        if one.is_padded != other.is_padded:
            named = one if one.is_padded else other
            return f'"{named}" has any length, which no number fits: give both values that axis'
    return ""


BROADCAST = ("symbol", "left_lacks", "right_lacks", "left_order", "right_order")


def make_module(**constants: str) -> TorchModule:
    """Return the torch module of ops on two values, or on a value and constants."""
    return TorchModule("modgraph.nn.Arithmetic", *BROADCAST, **constants, ids="of_ids")


class Pairwise(Op):
    """Base of elementwise ops on two values, or on a value and a constant."""

    symbol: ClassVar[str]
    broadcasts = True
    indexing = read_pointwise

    @property
    def constants(self) -> tuple[float | None, float | None]:
        """The left and the right constant, None for values."""
        return getattr(self, "left", None), getattr(self, "right", None)

    def slots_of(self, count: int) -> tuple[str, ...]:
        return ("left", "right") if count == 2 else super().slots_of(count)

    def bound_ids(self, found: tuple[TensorType, ...]) -> int | None:
        """The number of ids that result from operands of ids; None where the result is float. Raises `Misfit`."""
        if all(type_.dtype == "float" for type_ in found):
            return None
        sizes = tuple(type_.size for type_ in found if type_.size is not None)
        if len(sizes) < len(found):
            at = next(place for place, type_ in enumerate(found) if type_.size is None)
            other = next(type_ for type_ in found if type_.size is not None)
            raise Misfit(
                f'"{self.symbol}" takes {found[at]} and {other}', "turn ids into ones and zeros: -> one_hot", at
            )
        constants = [each for each in self.constants if each is not None]
        if any(each != int(each) or each < 0 for each in constants):
            raise Misfit(f"ids are whole numbers from 0, and {constants[0]} is none", "", 0)
        count = self.count_ids((*sizes, *(int(each) + 1 for each in constants)))
        if count is not None and count > MOST_IDS:
            raise Misfit(f"ids would have {count} values, which 64 bits do not hold", "divide before: ids % 1000", 0)
        return count

    def count_ids(self, sizes: tuple[int, ...]) -> int | None:
        """The number of ids that result, by the numbers of ids of both sides; None for a float. Raises `Misfit`."""
        raise Misfit(f'"{self.symbol}" is for floats, not for ids', "turn ids into ones and zeros: -> one_hot", 0)

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        values = self.constants.count(None)
        if values == 0:
            raise Misfit("with two constants it takes no value", "leave one of left and right out")
        if len(found) != values:
            raise Misfit(f"it takes {format_count(values, 'operand')} here, not {len(found)}")
        count = self.bound_ids(found)
        operands = tuple(TensorType("float", each.shape, per=each.per) for each in found)
        type_, aligned = align(operands, self.symbol)
        for side, each in (("left", aligned[0]), ("right", aligned[-1])):
            axes.bound[f"{side}_order"], axes.bound[f"{side}_lacks"] = each.order, each.lacks
        axes.bound["places"] = tuple(each.places for each in aligned)
        axes.bound["of_ids"] = found[0].dtype != "float"
        return (type_ if count is None else replace(type_, dtype="token", size=count),)

    def propagate_all(self, op: Op, signature: Signature, known: Bounds) -> Propagated:
        """Return `op` and its bound for two choices, if this op's result is zero where both values are."""
        if len(known) < 2 or not all(known):
            return None
        shape = signature.results[0].shape
        of_one_shape = all(type_.shape == shape for type_ in signature.operands)
        return op, either_bound(known, sum) if of_one_shape else ANYWHERE


class Arithmetic(Pairwise):
    """Base of + − × ÷ and power: two values, or a value and a constant."""

    module = make_module(left="left", right="right")

    left: float | None = setting(None, doc="a constant instead of the left operand")
    right: float | None = setting(None, doc="a constant instead of the right operand")


class _Additive(Arithmetic):
    """Zero where both values are."""

    def zero_with(self) -> tuple[int, ...]:
        return (0,) if 0 in self.constants else ()

    def propagate(self, signature: Signature, known: Bounds) -> Propagated:
        return self.propagate_all(Add(left=None, right=None), signature, known)


class Add(_Additive, name="add", synonyms="plus"):
    """Sum of two values."""

    symbol = "+"
    example = "input x: float[5, 6] y = x + x output y"
    neutral = {"left": 0, "right": 0}

    def count_ids(self, sizes: tuple[int, ...]) -> int:
        return sum(sizes) - 1


class Subtract(_Additive, name="subtract", synonyms="sub minus"):
    """Difference of two values."""

    symbol = "-"
    example = "input x: float[5, 6] y = x - 1 output y"
    neutral = {"right": 0}


class Multiply(Arithmetic, name="multiply", synonyms="mul times"):
    """Product of two values, element by element."""

    symbol = "*"
    example = "input x: float[5, 6] y = 2 * x output y"
    neutral = {"left": 1, "right": 1}

    def count_ids(self, sizes: tuple[int, ...]) -> int:
        return (sizes[0] - 1) * (sizes[1] - 1) + 1

    def zero_with(self) -> tuple[int, ...]:
        return (0, 1)


class Divide(Arithmetic, name="divide", synonyms="div quotient"):
    """Quotient of two values, element by element."""

    symbol = "/"
    example = "input x: float[5] y = 1 / x output y"
    neutral = {"right": 1}

    def zero_with(self) -> tuple[int, ...]:
        return (0,) if self.left is None else ()


class Power(Arithmetic, name="power", synonyms="pow"):
    """One value to the power of another, element by element."""

    symbol = "**"
    example = "input x: float[5, 6] y = x ** 2 output y"

    def zero_with(self) -> tuple[int, ...]:
        return (0,) if self.right is not None and self.right > 0 else ()


ARITHMETIC = {op.symbol: op for op in (Add, Subtract, Multiply, Divide, Power)}
