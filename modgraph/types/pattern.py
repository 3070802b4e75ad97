"""Matches axis patterns: `"... N D"` binds N and D to the last axes of a shape, and `"..."` to the outer axes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from modgraph.types.axis import (
    Axis,
    Shape,
    TensorType,
    find_repeated,
    format_shape,
    may_meet,
    meet_axes,
    meet_shapes,
    shape_of,
    shapes_meet,
)

F = TypeVar("F", bound=Callable[..., Any])


class Misfit(Exception):
    """Raised where types or settings do not fit a declaration; `operand` is the position of the faulty operand."""

    def __init__(self, reason: str, help: str = "", operand: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.help = help
        self.operand = operand


def infer_axis(method: F) -> F:
    """Mark a method as the rule of an axis; its parameters name the axes and settings that it needs."""
    method.__derived__ = True  # type: ignore[attr-defined]
    return method


class Axes:
    """Resolves the names of a declaration at one use: bound axes, settings and inferred axes."""

    def __init__(self, declaration: Any) -> None:
        self._declaration = declaration
        self.bound: dict[str, Any] = {}
        self.lead: Shape | None = None

    def match(self, pattern: str, found: TensorType, operand: int, what: str, help: str = "") -> None:
        """Bind the names of a pattern to a shape. A plain axis takes the name of an axis that it meets.

        Raises `Misfit`, with `help` where the number of axes differs.
        """
        names = pattern.split()
        open_ended = names[:1] == ["..."]
        trailing = names[open_ended:]
        shape = found.shape
        if len(shape) < len(trailing) or (not open_ended and len(shape) != len(trailing)):
            wanted = f"[{', '.join(names)}]"
            raise Misfit(f"{what} must have the axes {wanted}, not {format_shape(shape)}", help, operand)
        split = len(shape) - len(trailing)
        if open_ended:
            lead = shape[:split]
            if self.lead is not None and not shapes_meet(self.lead, lead):
                raise Misfit(
                    f"{what} must have the outer axes {format_shape(self.lead)}, not {format_shape(lead)}", "", operand
                )
            self.lead = lead if self.lead is None else meet_shapes(self.lead, lead)
        for name, axis in zip(trailing, shape[split:], strict=True):
            known = self.bound.setdefault(name, axis)
            if not may_meet(known, axis):
                raise Misfit(f"axis {name} of {what} is {axis}, but {known} elsewhere", "", operand)
            self.bound[name] = meet_axes(known, axis)

    def __getitem__(self, name: str) -> Any:
        """Return a bound axis as an `Axis`, a setting or an inferred size as its value."""
        if name in self.bound:
            return self.bound[name]
        if name.isdigit():
            return int(name)
        value = getattr(self._declaration, name)
        if getattr(value, "__derived__", False):
            return self.call(value)
        return value

    def size(self, name: str) -> int | None:
        """Return the size of an axis; None for any length."""
        axis = self[name]
        return axis.size if isinstance(axis, Axis) else axis

    def resolve(self, name: str) -> Any:
        """Return the value of a name, an axis as its size. Raises `Misfit` for an axis of any length."""
        value = self[name]
        if not isinstance(value, Axis):
            return value
        if value.size is None:
            reason = f'axis "{value}" has no fixed length, and {self._declaration.name} needs one'
            raise Misfit(reason, "give the axis a number in the input's type")
        return value.size

    def call(self, method: Callable[..., Any]) -> Any:
        """Call a method of the declaration with the settings and sizes of axes that its parameters name."""
        needs = _needs(method.__func__ if inspect.ismethod(method) else method)
        return method(**{name: self.resolve(name) for name in needs})

    def shape(self, pattern: str) -> Shape:
        """Return the shape of a pattern. Raises `Misfit` where an axis would occur twice."""
        return require_distinct(self.list_axes(pattern))

    def list_axes(self, pattern: str) -> Shape:
        """List the axes that a pattern names, in order."""
        named = ((self.lead or ()) if name == "..." else (self[name],) for name in pattern.split())
        return shape_of([axis for axes in named for axis in axes])


def require_distinct(shape: Shape) -> Shape:
    """Return the shape. Raises `Misfit` where a named axis occurs twice."""
    twice = find_repeated(shape)
    if twice is not None:
        reason = f'the axis "{twice.name}" would occur twice in {format_shape(shape)}'
        raise Misfit(reason, f'rename one: -> rename({twice.name}="{"key" if twice.is_padded else "other"}")')
    return shape


def replace_axes(x: TensorType, place: int, new: Sequence[Axis | int] = (), count: int = 1) -> TensorType:
    """Replace `count` axes of a type by `new` ones; `place` is that of the first, counted from the last.

    Raises `Misfit` where an axis would occur twice.
    """
    at = place + len(x.shape)
    return x.with_shape(require_distinct((*x.shape[:at], *shape_of(new), *x.shape[at + count :])))


@cache
def _needs(function: Callable[..., Any]) -> list[str]:
    """List the names that a method takes."""
    parameters = inspect.signature(function).parameters.items()
    return [
        name for name, each in parameters if name != "self" and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
