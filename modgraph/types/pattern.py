"""Axis patterns: `"... N D"` against a shape binds N and D, and `"..."` to whatever stands further out."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from modgraph.types.tensor import Axis, TensorType, shown

F = TypeVar("F", bound=Callable[..., Any])


class Misfit(Exception):
    """Types or settings do not fit a declaration; `operand` is the position of the culprit, if one is."""

    def __init__(self, reason: str, help: str = "", operand: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.help = help
        self.operand = operand


def derived(method: F) -> F:
    """Marks a method as an axis computed from others, which its parameters name."""
    method.__derived__ = True  # type: ignore[attr-defined]
    return method


class Axes:
    """The lengths a declaration's names have at one use: bound axes, settings and derived axes."""

    def __init__(self, declaration: Any) -> None:
        self._declaration = declaration
        self.bound: dict[str, Axis] = {}
        self.lead: tuple[Axis, ...] | None = None

    def match(self, pattern: str, found: TensorType, operand: int, what: str) -> None:
        """Bind the names of a pattern to a shape."""
        names = pattern.split()
        open_ended = bool(names) and names[0] == "..."
        trailing = names[1:] if open_ended else names
        shape = found.shape
        if len(shape) < len(trailing) or (not open_ended and len(shape) != len(trailing)):
            wanted = f"[{', '.join(names)}]"
            raise Misfit(f"{what} must have the axes {wanted}, not {shown(shape)}", _rank_help(names), operand)
        split = len(shape) - len(trailing)
        if open_ended:
            if self.lead is not None and self.lead != shape[:split]:
                raise Misfit(f"{what} has outer axes {shown(shape[:split])}, not {shown(self.lead)}", "", operand)
            self.lead = shape[:split]
        for name, axis in zip(trailing, shape[split:], strict=True):
            if self.bound.setdefault(name, axis) != axis:
                known = self.bound[name]
                raise Misfit(f"axis {name} of {what} is {axis}, but it is {known} elsewhere", "", operand)

    def __getitem__(self, name: str) -> Any:
        if name in self.bound:
            return self.bound[name]
        if name.isdigit():
            return int(name)
        value = getattr(self._declaration, name)
        if getattr(value, "__derived__", False):
            return self.call(value)
        return value

    def call(self, method: Callable[..., Any]) -> Any:
        """A method of the declaration, its parameters filled with the axes and settings they name."""
        values = {}
        for name, fixed in _needs(method.__func__ if inspect.ismethod(method) else method).items():
            values[name] = self[name]
            if fixed and isinstance(values[name], str):
                reason = f'axis "{values[name]}" has no fixed length, and {self._declaration.name} needs one'
                raise Misfit(reason, "give the axis a number in the input's type")
        return method(**values)

    def shape(self, pattern: str) -> tuple[Axis, ...]:
        """The shape that a pattern stands for here."""
        shape: list[Axis] = []
        for name in pattern.split():
            if name == "...":
                shape.extend(self.lead or ())
            else:
                shape.append(self[name])
        return tuple(shape)


@cache
def _needs(function: Callable[..., Any]) -> dict[str, bool]:
    """The names a method takes, and whether each must have a fixed length: it may not if annotated with `str`."""
    parameters = inspect.signature(function).parameters
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {
        name: "str" not in str(parameter.annotation)
        for name, parameter in parameters.items()
        if name != "self" and parameter.kind not in variable
    }


def _rank_help(names: list[str]) -> str:
    if names[-3:] == ["C", "H", "W"]:
        return "an image has the axes channels, height, width"
    if names[-2:] == ["N", "D"]:
        return "tokens have the axes number, width; an image becomes tokens with: -> tokens"
    return ""
