"""Settings: the values that fields of a declaration or of a recipe's section accept."""

from __future__ import annotations

import dataclasses
import math
import operator
import sys
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

from modgraph.declare.words import format_briefly, format_value
from modgraph.diagnostics import closest
from modgraph.types import Misfit, TensorType, explain_word_problem, format_shape, is_path

MISSING = dataclasses.MISSING
LIMITS = {"min": ("at least", operator.lt), "max": ("at most", operator.gt), "below": ("below", operator.ge)}


def setting(
    default: Any = MISSING,
    *,
    min: float | None = None,
    max: float | None = None,
    below: float | None = None,
    choices: tuple[str, ...] = (),
    path: bool = False,
    axis: bool = False,
    extent: str = "",
    doc: str = "",
) -> Any:
    """Declare a setting and the values that it accepts (`min`, `max` inclusive, `below` exclusive).

    `path` marks paths of files or folders in a recipe. `axis` marks the name of an axis. `extent` marks a size in
    whose place a pool may be given, and names the setting that then gets the name of the pool's axis.
    """
    metadata: dict[str, Any] = {"min": min, "max": max, "below": below, "choices": choices}
    metadata |= {"path": path, "axis": axis, "extent": extent, "doc": doc}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Setting:
    """The values that one setting accepts."""

    name: str
    kinds: tuple[type, ...]
    default: Any
    bounds: dict[str, Any]
    items: tuple[type, ...] = (int,)  # of a list

    @classmethod
    def from_field(cls, field: dataclasses.Field[Any], hint: Any) -> Setting:
        options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        kinds = tuple(typing.get_origin(option) or option for option in options if option is not type(None))
        lists = [typing.get_args(option)[0] for option in options if typing.get_origin(option) is tuple]
        items = [typing.get_args(item) or (item,) for item in lists]
        return cls(field.name, kinds, field.default, dict(field.metadata), *items)

    @property
    def required(self) -> bool:
        return self.default is MISSING

    @property
    def names_axis(self) -> bool:
        """Whether a string names a new axis; a setting that accepts numbers too refers to an existing axis."""
        return bool(self.bounds.get("axis")) and int not in (self.items if tuple in self.kinds else self.kinds)

    def problem(self, value: Any) -> str | None:
        """Explain why a value is not accepted; None if it is."""
        if not self._is_of_kind(value):
            return f"must be {self.describe()}, not {format_briefly(value)}"
        problems = map(self._member_problem, value if isinstance(value, tuple) else (value,))
        return next(filter(None, problems), None)

    def _member_problem(self, value: Any) -> str | None:
        bounds, choices = self.bounds, self.bounds.get("choices", ())
        if isinstance(value, str):
            if choices and value not in choices:
                return f"must be one of {', '.join(map(format_value, choices))}, not {format_briefly(value)}"
            is_name = not self.names_axis or not value or is_path(value)
            return None if is_name else f"{explain_word_problem(value)}, not {format_briefly(value)}"
        if isinstance(value, float) and not math.isfinite(value):
            return f"must be a finite number, not {value}"
        for words, is_outside, limit in ((*LIMITS[each], bounds.get(each)) for each in LIMITS):
            if limit is not None and is_outside(value, limit):
                return f"must be {words} {limit}, not {value}"
        return None

    def convert(self, value: Any) -> Any:
        """Convert whole numbers to real ones where the setting is real."""
        if isinstance(value, tuple) and float in self.items:
            return tuple(map(float, value))
        return float(value) if float in self.kinds and type(value) is int else value

    def _is_of_kind(self, value: Any) -> bool:
        if isinstance(value, bool):
            return bool in self.kinds
        if isinstance(value, int):
            return int in self.kinds or float in self.kinds
        if isinstance(value, tuple):
            kinds = (int, *self.items) if float in self.items else self.items
            return tuple in self.kinds and all(type(item) in kinds for item in value)
        return isinstance(value, self.kinds)

    def describe(self) -> str:
        """Describe the accepted values; a section of a recipe is a registered kind or a mapping."""
        words = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}
        items = {int: "whole numbers", float: "numbers", str: "strings"}
        words[tuple] = f"a list of {' or '.join(items[item] for item in self.items)}"
        registries = {kind: getattr(kind, "registry", None) for kind in self.kinds}
        sections = {kind: "a mapping" if each is None else f"a {each.kind}" for kind, each in registries.items()}
        return " or ".join({**sections, **words}[kind] for kind in self.kinds)


@cache
def _evaluate_annotation(annotation: Any, module: str) -> Any:
    """Evaluate the annotation of one field; evaluating those of a whole class takes longer than a small spec."""
    holder = types.SimpleNamespace(__annotations__={"field": annotation})
    return typing.get_type_hints(holder, vars(sys.modules[module]))["field"]


def _rename(value: Any, rename: Callable[[str], str]) -> Any:
    """Rename the axes in the value of a setting; numbers and "" (a plain axis) stay."""
    if isinstance(value, tuple):
        return tuple(_rename(each, rename) for each in value)
    return rename(value) if isinstance(value, str) and value else value


class Configurable:
    """A frozen dataclass whose fields are its settings."""

    @classmethod
    @cache
    def settings(cls) -> dict[str, Setting]:
        """Return the settings by name, required ones first."""
        found = {}
        for field in sorted(dataclasses.fields(typing.cast(Any, cls)), key=lambda field: field.default is not MISSING):
            annotated = next(each for each in cls.__mro__ if field.name in vars(each).get("__annotations__", {}))
            hint = _evaluate_annotation(vars(annotated)["__annotations__"][field.name], annotated.__module__)
            found[field.name] = Setting.from_field(field, hint)
        return found

    def with_extent(self, axis: str, size: int | None) -> Self:
        """Return a copy with another size for a named axis, if a setting has its length."""
        extents = ((name, known.bounds.get("extent")) for name, known in self.settings().items())
        found = {name: size for name, of in extents if of and getattr(self, of) == axis}
        return dataclasses.replace(typing.cast(Any, self), **found) if found else self

    def with_axes(self, rename: Callable[[str], str]) -> Self:
        """Return a copy with other names for the axes that the settings name."""
        values = {name: getattr(self, name) for name, known in self.settings().items() if known.bounds.get("axis")}
        renamed = {name: _rename(value, rename) for name, value in values.items()}
        return self if renamed == values else dataclasses.replace(typing.cast(Any, self), **renamed)

    def values(self) -> dict[str, Any]:
        """Return the settings that differ from their defaults, by name."""
        return {
            name: value for name, known in self.settings().items() if (value := getattr(self, name)) != known.default
        }


def position_of(axis: int | str, type_: TensorType, who: str) -> int:
    """Find the place of an axis in a value, counted from the last (−1, −2, …). Raises `Misfit`."""
    rank = len(type_.shape)
    if isinstance(axis, int):
        if -axis <= rank:
            return axis
        advice = f"write {who}(axis=-1)" if rank else "it is a single number already"
        raise Misfit(f"unknown axis {axis} in {format_shape(type_.shape)}", advice)
    position = type_.position(axis)
    if position is None:
        names = [each.name for each in type_.shape if each.name]
        advice = "count from the last: axis=-1"
        advice = f"axes are: {', '.join(names)}; or {advice}" if names else f"{advice}: its axes have no names"
        meant = closest(axis, names)
        advice = f'did you mean "{meant}"? {advice}' if meant else advice
        raise Misfit(f'unknown axis "{axis}" in {format_shape(type_.shape)}', advice)
    return position - rank


def positions_of(axes: tuple[int | str, ...], type_: TensorType, who: str) -> list[int]:
    """Find the places of several axes. Raises `Misfit`, also for an axis given twice."""
    found = [position_of(axis, type_, who) for axis in axes]
    if len(set(found)) < len(found):
        raise Misfit("an axis occurs twice", "keep one of them")
    return found


def axis_setting(default: int) -> Any:
    """Declare the setting for the axis that an op works along."""
    return setting(default, max=-1, axis=True, doc="the axis, by name or counted from the last: -1, -2, …")
