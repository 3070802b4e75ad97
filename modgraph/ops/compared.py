"""Minimum and maximum of two values, comparisons, and `where`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, ClassVar

from modgraph.declare import Operand, Signature, format_count, join_ids, own_module, setting
from modgraph.declare.indexing import read_pointwise
from modgraph.ops.arithmetic import Pairwise, align, make_module
from modgraph.ops.op import Op
from modgraph.ops.zeros import ANYWHERE, Bound, Bounds, ChoiceRanks, Propagated
from modgraph.types import Axes, Misfit, TensorType

MOST_RANKS = 2**12  # compared one by one


class _Compared(Pairwise):
    """Base of comparisons of two values, or of a value and a constant."""

    module = make_module(right="right")

    right: float | None = setting(None, doc="a constant instead of the second operand")


class Minimum(_Compared, name="minimum"):
    """The smaller of two values, element by element."""

    symbol = "minimum"
    constant_for = ("right", "right")
    example = "input x: float[5, 6] y = (x, x ** 2) -> minimum output y"

    def zero_with(self) -> tuple[int, ...]:
        return (0,) if self.right is not None and self.right >= 0 else ()

    def zero_where(self) -> tuple[int, Op] | None:
        return (0, Greater(right=0.0)) if self.right == 0 else None

    def propagate(self, signature: Signature, known: Bounds) -> Propagated:
        return self.propagate_all(Maximum(right=None), signature, known)


class Maximum(Minimum, name="maximum"):
    """The larger of two values, element by element."""

    symbol = "maximum"
    example = "input x: float[5, 6] y = x -> maximum(0.5) output y"

    def zero_with(self) -> tuple[int, ...]:
        return (0,) if self.right is not None and self.right <= 0 else ()

    def zero_where(self) -> tuple[int, Op] | None:
        return (0, Less(right=0.0)) if self.right == 0 else None


class Comparison(_Compared):
    """Base of comparisons: one where the comparison is true, else zero, without gradient. A choice of any number of
    places."""

    constant_for = ("", "right")
    holds: ClassVar[Callable[[float, float], bool]]  # compares two numbers

    def bound_ids(self, found: tuple[TensorType, ...]) -> int | None:
        """Ids compare with ids, and with a whole number that one of them has."""
        size = found[0].size
        if size is not None and self.right is not None:
            if self.symbol in ("==", "!=") and self.right not in range(size):
                raise Misfit(f"no id of {found[0]} is {self.right:g}", f"ids are 0 to {size - 1}", 0)
            return None
        return super().bound_ids(found)

    def count_ids(self, sizes: tuple[int, ...]) -> None:
        return None

    def choice_bound(self, signature: Signature) -> Bound:
        return ANYWHERE

    def zero_with(self) -> tuple[int, ...]:
        return () if self.right is None or type(self).holds(0.0, self.right) else (0,)

    def choice_ranks(self, size: int | None) -> ChoiceRanks | None:
        if self.right is None:
            return None
        counted = MOST_RANKS if size is None else min(size, MOST_RANKS)
        holding = [type(self).holds(float(rank), self.right) for rank in range(counted)]
        return None if holding[-1] and counted != size else ChoiceRanks(sum(holding), all(holding[: sum(holding)]))


def _compare(name: str, symbol: str, holds: Any, one_where: str, words: str, example: str) -> type[Comparison]:
    """Declare a comparison as a class of this name; the example is an expression of x."""
    facts: dict[str, Any] = {"symbol": symbol, "holds": holds}
    facts |= {"example": f"input x: float[5, 6] y = {example} output y"}
    facts |= {"__module__": __name__, "__doc__": f"One where {one_where}, without gradient."}
    word = "_".join(re.findall("[A-Z][a-z]+", name)).lower()
    return type(name, (Comparison,), facts, name=word, synonyms=words)


FIRST = "the first value is {} the second, zero elsewhere"
Less = _compare("Less", "<", operator.lt, FIRST.format("less than"), "lt less_than", "x < 0.5")
LessEqual = _compare("LessEqual", "<=", operator.le, FIRST.format("at most"), "le at_most", "x <= 0")
Greater = _compare("Greater", ">", operator.gt, FIRST.format("more than"), "gt greater_than", "x > x ** 2")
GreaterEqual = _compare("GreaterEqual", ">=", operator.ge, FIRST.format("at least"), "ge at_least", "x >= 0")
Equal = _compare("Equal", "==", operator.eq, "two values are equal, zero elsewhere", "eq equals", "(x -> relu) == 0")
NotEqual = _compare(
    "NotEqual", "!=", operator.ne, "two values differ, zero where they are equal", "ne differs", "(x -> relu) != x"
)
COMPARISONS: dict[str, type[Comparison]] = {
    op.symbol: op for op in (Less, LessEqual, Greater, GreaterEqual, Equal, NotEqual)
}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


class Where(Op, name="where", synonyms="if_else switch_case"):
    """One value where a condition is not zero, another elsewhere: `where(x > 0, a, b)`; a and b may be constants.

    Values broadcast as in arithmetic. No gradient flows to the value that is not taken.
    """

    nondifferentiable = ("condition",)
    example = "input x: float[5, 6] y = (x > 0, x, x ** 2) -> where output y"
    operands = (Operand("condition", "..."), Operand("chosen", "..."), Operand("other", "..."))
    module = own_module("lacks", "orders", then="then", otherwise="otherwise", ids="of_ids")
    constant_for = ("", "then", "otherwise")
    broadcasts = True
    indexing = read_pointwise
    taken_as_is = (0,)

    otherwise: float | None = setting(None, doc="a constant instead of the third value")
    then: float | None = setting(None, doc="a constant instead of the second value")

    def slots_of(self, count: int) -> tuple[str, ...]:
        given = (True, self.then is None, self.otherwise is None)
        return tuple(operand.name for operand, is_value in zip(self.operands, given, strict=True) if is_value)

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        wanted = len(self.slots_of(len(found)))
        if len(found) != wanted:
            advice = "write (condition, a, b) -> where, or with constants: where(condition, a, 0)"
            raise Misfit(f"it takes {format_count(wanted, 'operand')} here, not {len(found)}", advice)
        if found[0].dtype != "float":
            raise Misfit(f"its condition must be float, not {found[0]}", "compare the ids: where(ids == 3, a, b)", 0)
        operands = tuple(TensorType("float", each.shape, per=each.per) for each in found)
        type_, aligned = align(operands, self.name)
        axes.bound["lacks"] = tuple(each.lacks for each in aligned)
        axes.bound["orders"] = tuple(each.order for each in aligned)
        axes.bound["places"] = tuple(each.places for each in aligned)
        result = self._join_ids(type_, found[1:])
        axes.bound["of_ids"] = result.dtype != "float"
        return (result,)

    def _join_ids(self, result: TensorType, found: tuple[TensorType, ...]) -> TensorType:
        """The type of the result: of ids where the values are ids, and the constants whole numbers from 0."""
        constants = [each for each in (self.then, self.otherwise) if each is not None]
        if not any(type_.size for type_ in found):
            return result
        if any(each != int(each) or each < 0 for each in constants):
            raise Misfit(f"ids are whole numbers from 0, and {constants[0]:g} is none", "", 1)
        whole = tuple(TensorType("token", size=int(each) + 1) for each in constants)
        return join_ids(result, (*found, *whole))

    def zero_with(self) -> tuple[int, ...]:
        if self.otherwise == 0:
            return (0, 1) if self.then is None else (0,)
        return (1,) if self.then == 0 and self.otherwise is None else ()

    def zero_where(self) -> tuple[int, Op] | None:
        if self.otherwise == 0:
            return 0, Equal(right=0.0)
        return (0, NotEqual(right=0.0)) if self.then == 0 else None

    def propagate(self, signature: Signature, known: Bounds) -> Propagated:
        return (self, ANYWHERE) if len(known) == 3 and any(known[1:]) else None
