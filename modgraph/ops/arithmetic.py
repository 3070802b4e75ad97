"""Arithmetic between values, and between a value and a constant.

Operands broadcast. Axes align by name, unnamed ones from the last. An operand repeats along axes that it lacks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from modgraph.declare import Signature, TorchModule, format_count, setting
from modgraph.declare.indexing import read_pointwise
from modgraph.ops.op import Op
from modgraph.ops.zeros import ANYWHERE, Bounds, Propagated, either_bound
from modgraph.types import Axes, Misfit, Shape, TensorType, align_axes, broadcast, format_shape, require_distinct

MOST_IDS = 2**62


def align(found: tuple[TensorType, ...], sign: str) -> tuple[TensorType, list[tuple[int, ...]]]:
    """Broadcast the types of some values; list for each value the axes that it lacks, counted from the result's last.

    Raises `Misfit` if they do not broadcast; `sign` is the operator or op.
    """
    for at, type_ in enumerate(found):
        if type_.dtype != "float":
            raise Misfit(f"arithmetic is for float values, not {type_}", "", at)
    shapes = [type_.shape for type_ in found]
    whole = shapes[0]
    for each in shapes[1:]:
        inner, outer = sorted((whole, each), key=len)
        positions = align_axes(inner, outer)
        if positions is None:
            reason = f'the shapes {format_shape(whole)} and {format_shape(each)} do not fit together under "{sign}"'
            raise Misfit(reason, _way_out(whole, each))
        joined = list(outer)
        for axis, at in zip(inner, positions, strict=True):
            joined[at] = broadcast(joined[at], axis)
        whole = tuple(joined)
    whole, lacks = require_distinct(whole), []
    for each in shapes:
        positions = align_axes(each, whole)
        if positions is None:
            raise Misfit(f"{format_shape(each)} stands nowhere in {format_shape(whole)}", "")
        lacks.append(tuple(at - len(whole) for at in range(len(whole)) if at not in positions))
    over_batch = all(type_.per == "batch" for type_ in found)
    return TensorType("float", whole, per="batch" if over_batch else "example"), lacks


def _way_out(left: Shape, right: Shape) -> str:
    """Return the help for two values that fit except for the names of their axes."""
    for one, other in zip(reversed(left), reversed(right), strict=False):
        if one.size == other.size and one.name != other.name and one.name and other.name:
            meant = f'-> rename({other.name}="{one.name}")' if "." not in one.name + other.name else "rename one"
            meant = "give them one name where they are declared" if one.is_padded else meant
            return f'"{one.name}" and "{other.name}" are axes of unlike things; if the same is meant: {meant}'
    return ""


def make_module(**constants: str) -> TorchModule:
    """Return the torch module of ops on two values, or on a value and constants."""
    return TorchModule("modgraph.nn.Arithmetic", "symbol", "left_lacks", "right_lacks", **constants, ids="of_ids")


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
        type_, lacks = align(tuple(TensorType("float", each.shape, per=each.per) for each in found), self.symbol)
        axes.bound["left_lacks"], axes.bound["right_lacks"] = lacks[0], lacks[-1]
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
