"""Computes with constants, within bounds checked beforehand."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from modgraph.declare import format_briefly
from modgraph.syntax.limits import INTEGER

LONGEST_LIST = 100_000
DEEPEST_LIST = 100
LETTERS_A_STEP = 100  # of strings, which compare faster than numbers in lists


class ConstantProblem(Exception):
    def __init__(self, problem: str, way_out: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.way_out = way_out


def apply_unary(sign: str, operand: Any) -> Any:
    return not _require_truth(operand) if sign == "not" else -_require_number(operand, sign)


def apply_binary(sign: str, left: Any, right: Any) -> Any:
    """Compute `left sign right`. Raises `ConstantProblem`."""
    if sign in ("and", "or"):
        pair = _require_truth(left), _require_truth(right)
        return all(pair) if sign == "and" else any(pair)
    if sign in ("==", "!="):
        return (left == right) == (sign == "==")
    if sign in ("in", "not in"):
        if not isinstance(right, tuple | range):
            raise ConstantProblem(f'"in" needs a list or a range, not {format_briefly(right)}')
        if isinstance(right, range):  # without iterating over its members
            return (isinstance(left, int | float) and left == left // 1 and int(left) in right) == (sign == "in")
        return (left in right) == (sign == "in")
    _require_number(left, sign)
    _require_number(right, sign)
    if sign in COMPARISONS:
        return COMPARISONS[sign](left, right)
    if sign in ("/", "//", "%") and right == 0:
        raise ConstantProblem("division by zero", "check the parameters in the divisor")
    if sign == "**" and left == 0 and right < 0:
        raise ConstantProblem("division by zero")
    if sign == "**" and left != 0 and abs(right) * abs(math.log2(abs(left))) > 1000:
        raise ConstantProblem(f"the result is too large: at most {INTEGER}")
    return _check_bounds(ARITHMETIC[sign](left, right))


def measure_extent(value: Any) -> tuple[int, int]:
    """Measure a constant: the number of members of its lists, nested ones included, and their depth.

    A range counts as one; the measurement stops beyond the limits.
    """
    count, depth, level = 0, 0, [value]
    while level and count <= LONGEST_LIST and depth <= DEEPEST_LIST:
        count += sum(1 + len(each) // LETTERS_A_STEP if isinstance(each, str) else 1 for each in level)
        lists = [each for each in level if isinstance(each, tuple)]
        depth += bool(lists)
        within = sum(map(len, lists))
        level = [member for each in lists for member in each] if count + within <= LONGEST_LIST else []
        count += 0 if level else within
    return count, depth


def check_extent(count: int, depth: int) -> None:
    """Raise `ConstantProblem` for a list with too many members, or nested too deep."""
    if count > LONGEST_LIST:
        raise ConstantProblem(f"lists with too many members in all: at most {LONGEST_LIST}", "write a range: 0..n")
    if depth > DEEPEST_LIST:
        raise ConstantProblem(f"lists are nested more than {DEEPEST_LIST} deep", "use fewer levels")


def make_range(start: Any, stop: Any) -> range:
    for end in (start, stop):
        if type(end) is not int:
            raise ConstantProblem(f"a range needs whole numbers, not {format_briefly(end)}")
    return range(start, stop)


def take_item(values: Any, index: Any) -> Any:
    """Return one member of a list, counted from 0."""
    if not isinstance(values, tuple | range):
        raise ConstantProblem(f"expected a list or a family, found {format_briefly(values)}")
    if type(index) is not int or not 0 <= index < len(values):
        last = f"the last member is {len(values) - 1}" if values else "it is empty"
        raise ConstantProblem(f"a list of {len(values)} has no member {format_briefly(index)}", last)
    return values[index]


def call(name: str, values: list[Any]) -> Any:
    """Compute a function of constants: of a list, or of one number."""
    try:
        if name in OF_ONE:
            (only,) = values
            if (name == "log" and _require_number(only, name) <= 0) or (
                name == "sqrt" and _require_number(only, name) < 0
            ):
                raise ConstantProblem(f"{name} of {only} is not a finite real number")
            return _check_bounds(OF_ONE[name](_require_number(only, name)))
        if name == "len":
            (only,) = values
            if not isinstance(only, tuple | range | str):
                raise ConstantProblem(f"len needs a list, not {format_briefly(only)}")
            return len(only)
        if name in OF_POOL:
            raise ConstantProblem(f"{name} needs a pool")
        numbers = values[0] if len(values) == 1 and isinstance(values[0], tuple | range) else values
        if len(numbers) > LONGEST_LIST:
            raise ConstantProblem(f"{name} of {len(numbers)} numbers: at most {LONGEST_LIST}")
        return _check_bounds(OF_SEVERAL[name]([_require_number(number, name) for number in numbers]))
    except OverflowError as error:
        raise ConstantProblem("the result is not a finite real number") from error
    except (ValueError, TypeError) as error:
        raise ConstantProblem(f"{name} does not take these {len(values)} values") from error


OF_ONE: dict[str, Callable[[Any], Any]] = {"abs": abs, "round": round}
OF_ONE |= {name: getattr(math, name) for name in ("exp", "log", "sqrt", "sin", "cos", "floor")}
OF_SEVERAL: dict[str, Callable[[Any], Any]] = {"min": min, "max": max, "sum": sum}
OF_POOL = ("len", "message_rank", "message_width", "result_rank", "result_width")  # functions of a pool
GIVEN = "given"
FUNCTIONS = (*OF_SEVERAL, *OF_POOL, *OF_ONE, GIVEN)
COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    **{"+": operator.add, "-": operator.sub, "*": operator.mul, "**": operator.pow},
    **{"/": operator.truediv, "//": operator.floordiv, "%": operator.mod},
}


def _check_bounds(value: Any) -> Any:
    if isinstance(value, complex) or (isinstance(value, float) and not math.isfinite(value)):
        raise ConstantProblem("the result is not a finite real number")
    if isinstance(value, int) and abs(value) > INTEGER:
        raise ConstantProblem(f"the result is too large: at most {INTEGER}")
    return value


def _require_number(value: Any, sign: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConstantProblem(f'"{sign}" needs numbers, not {format_briefly(value)}')
    return value


def _require_truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ConstantProblem(f"a condition must be true or false, not {format_briefly(value)}", "compare it: x == 1")
    return value


def has_kind(default: Any, value: Any) -> bool:
    """Whether a parameter with this default accepts a value."""
    kinds: Any = {float: int | float, tuple: tuple | range, range: tuple | range}.get(type(default), type(default))
    return isinstance(default, bool) == isinstance(value, bool) and isinstance(value, kinds)


def describe_kind(default: Any) -> str:
    """Describe what a parameter with this default accepts."""
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}
    return words.get(type(default), "a list")
