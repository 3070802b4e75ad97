"""Settings: what may be given for the fields of a declaration or of a section of a recipe."""

from __future__ import annotations

import dataclasses
import math
import sys
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

from modgraph.declare.words import shown_briefly, shown_value
from modgraph.types import is_path, word_problem

MISSING = dataclasses.MISSING


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
    """A setting of a declaration, with the values it takes (`min`, `max` inclusive, `below` exclusive).

    Of a recipe it may be the `path` of a file or folder, or several; of an op the name of an `axis`, or the `extent` of
    one: a pool is then as long as it has modules, and the setting of that name is called after its axis.
    """
    metadata: dict[str, Any] = {"min": min, "max": max, "below": below, "choices": choices}
    metadata |= {"path": path, "axis": axis, "extent": extent, "doc": doc}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Setting:
    """What may be given for one setting."""

    name: str
    kinds: tuple[type, ...]
    default: Any
    bounds: dict[str, Any]
    items: tuple[type, ...] = (int,)  # what a list holds

    @classmethod
    def of(cls, field: dataclasses.Field[Any], hint: Any) -> Setting:
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
        """Whether a string gives a new axis its name; where a number is allowed too, it refers to an existing axis."""
        return bool(self.bounds.get("axis")) and int not in (self.items if tuple in self.kinds else self.kinds)

    def problem(self, value: Any) -> str | None:
        """What is wrong with a value, or None."""
        if not self._is_of_kind(value):
            return f"must be {self.described()}, not {shown_briefly(value)}"
        bounds = self.bounds
        members = value if isinstance(value, tuple) else (value,)
        for text in (each for each in members if isinstance(each, str)):
            if problem := self._text_problem(text):
                return problem
        for number in (each for each in members if not isinstance(each, str)):
            if isinstance(number, float) and not math.isfinite(number):
                return f"must be a finite number, not {number}"
            if bounds.get("min") is not None and number < bounds["min"]:
                return f"must be at least {bounds['min']}, not {number}"
            if bounds.get("max") is not None and number > bounds["max"]:
                return f"must be at most {bounds['max']}, not {number}"
            if bounds.get("below") is not None and number >= bounds["below"]:
                return f"must be below {bounds['below']}, not {number}"
        return None

    def _text_problem(self, text: str) -> str | None:
        choices = self.bounds.get("choices", ())
        if choices and text not in choices:
            return f"must be one of {', '.join(map(shown_value, choices))}, not {shown_briefly(text)}"
        if self.names_axis and text and not is_path(text):
            return f"{word_problem(text)}, not {shown_briefly(text)}"
        return None

    def convert(self, value: Any) -> Any:
        """A whole number where a real one is meant becomes one."""
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

    def described(self) -> str:
        words = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}
        items = {int: "whole numbers", float: "numbers", str: "strings"}
        words[tuple] = f"a list of {' or '.join(items[item] for item in self.items)}"
        return " or ".join(words.get(kind) or _section_word(kind) for kind in self.kinds)


def _section_word(kind: type) -> str:
    """What a section of a recipe is called: one of those declared by name, or a mapping."""
    registry = getattr(kind, "registry", None)
    return "a mapping" if registry is None else f"a {registry.kind}"


def _type_of(cls: type, field: str) -> Any:
    """What a field is annotated with. Evaluating all annotations of a class, those of no fields too, takes longer than
    a small spec."""
    kind = next(each for each in cls.__mro__ if field in vars(each).get("__annotations__", {}))
    return _evaluated(vars(kind)["__annotations__"][field], kind.__module__)


@cache
def _evaluated(annotation: Any, module: str) -> Any:
    holder = types.SimpleNamespace(__annotations__={"field": annotation})
    return typing.get_type_hints(holder, vars(sys.modules[module]))["field"]


def _rename(value: Any, rename: Callable[[str], str]) -> Any:
    """The value of a setting that names axes, with other names; a number counts axes, and "" is a plain one."""
    if isinstance(value, tuple):
        return tuple(_rename(each, rename) for each in value)
    return rename(value) if isinstance(value, str) and value else value


class Configurable:
    """A frozen dataclass whose fields are its settings."""

    @classmethod
    @cache
    def settings(cls) -> dict[str, Setting]:
        """The settings by name, in order, those that must be given before the others."""
        fields = dataclasses.fields(typing.cast(Any, cls))
        fields = tuple(sorted(fields, key=lambda field: field.default is not MISSING))
        return {field.name: Setting.of(field, _type_of(cls, field.name)) for field in fields}

    def with_extent(self, axis: str, size: int | None) -> Self:
        """The same with another size for the axis of a name, where a setting says how long that is."""
        extents = ((name, known.bounds.get("extent")) for name, known in self.settings().items())
        found = {name: size for name, of in extents if of and getattr(self, of) == axis}
        return dataclasses.replace(typing.cast(Any, self), **found) if found else self

    def with_axes(self, rename: Callable[[str], str]) -> Self:
        """The same with other names for the axes that its settings name."""
        values = {name: getattr(self, name) for name, known in self.settings().items() if known.bounds.get("axis")}
        renamed = {name: _rename(value, rename) for name, value in values.items()}
        return self if renamed == values else dataclasses.replace(typing.cast(Any, self), **renamed)

    def values(self) -> dict[str, Any]:
        """The settings that are not at their default, by name."""
        return {
            name: value for name, known in self.settings().items() if (value := getattr(self, name)) != known.default
        }
