"""How an op or router is declared: once, without torch, and everything else follows.

A declaration is a frozen dataclass whose fields are its settings. Class attributes name its operands, results and
weights by axis patterns, and the torch module that computes it. Signatures, checks, shapes, parameter counts, weight
names and reference pages are all read from there.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, dataclass_transform

from modgraph.types.pattern import Axes, Misfit
from modgraph.types.tensor import Axis, TensorType

MISSING = dataclasses.MISSING
MOST_LETTERS = 60  # of a constant that a message shows
MOST_MEMBERS = 8


def setting(
    default: Any = MISSING,
    *,
    min: float | None = None,
    max: float | None = None,
    below: float | None = None,
    choices: tuple[str, ...] = (),
    path: bool = False,
    doc: str = "",
) -> Any:
    """A setting of a declaration, with the values it takes (`min`, `max` inclusive, `below` exclusive).

    Of a recipe it may be the `path` of a file or folder, or several.
    """
    metadata = {"min": min, "max": max, "below": below, "choices": choices, "path": path, "doc": doc}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Initial:
    """How a weight starts: `zeros`, `ones`, `constant`, `normal` or `uniform`; the scale is the value, the standard
    deviation, the bound."""

    kind: str
    scale: float = 1.0
    fan: str = ""  # axes whose product n makes the bound 1/√n

    def __str__(self) -> str:
        return f"{self.kind}({self.scale})"


ZEROS = Initial("zeros")
ONES = Initial("ones")


def constant(value: float) -> Initial:
    return Initial("constant", value)


def normal(deviation: float) -> Initial:
    return Initial("normal", deviation)


def uniform(fan: str) -> Initial:
    """U(−1/√n, 1/√n), n the product of the axes in `fan`; Kaiming-uniform with a = √5 is this with n the fan-in."""
    return Initial("uniform", fan=fan)


@dataclass(frozen=True)
class Weight:
    """A weight: its name in the state dict, its axes, how it starts.

    A `shared` weight belongs to a pool as a whole, others to each of its modules. A `buffer` is state that no
    gradient moves. `when` names a boolean setting without which the weight is absent. `modules` names the one of its
    axes that is the modules' of the pool that a router serves.
    """

    name: str
    axes: str
    initial: Initial = ZEROS
    when: str = ""
    shared: bool = False
    buffer: bool = False
    modules: str = ""


@dataclass(frozen=True)
class Operand:
    name: str
    axes: str
    dtype: str = "float"


class TorchModule:
    """The torch module of a declaration: an import path and what its constructor takes, by setting or axis name."""

    def __init__(self, path: str, *positional: str, **named: str) -> None:
        self.path = path
        self.positional = positional
        self.named = named


@dataclass_transform(frozen_default=True, field_specifiers=(setting,))
class _Declared:
    """Makes every class below it a frozen dataclass."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(frozen=True)(cls)


class Declaration(_Declared):
    """Base of ops and routers."""

    name: ClassVar[str]
    example: ClassVar[str]  # the body of a small model that uses it once
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", "..."),)
    variadic: ClassVar[bool] = False
    results: ClassVar[tuple[str, ...]] = ("...",)
    weights: ClassVar[tuple[Weight, ...]] = ()
    module: ClassVar[TorchModule]

    @classmethod
    @cache
    def settings(cls) -> dict[str, Setting]:
        """The settings by name, in order."""
        hints = typing.get_type_hints(cls)
        fields = dataclasses.fields(typing.cast(Any, cls))
        return {field.name: Setting.of(field, hints[field.name]) for field in fields}

    def values(self) -> dict[str, Any]:
        """The settings that are not at their default, by name."""
        return {
            name: value for name, known in self.settings().items() if (value := getattr(self, name)) != known.default
        }

    def all_weights(self) -> tuple[Weight, ...]:
        """The weights that this declaration has under its settings."""
        return tuple(weight for weight in self.weights if not weight.when or getattr(self, weight.when))

    def bind(self, *found: TensorType, **known: Axis) -> Signature:
        """Check operand types and infer the results, some axes known beforehand. Raises `Misfit`."""
        axes = Axes(self)
        axes.bound.update(known)
        operands = self.operands
        if self.variadic:
            operands = tuple(self.operands[0] for _ in found)
        if len(found) != len(operands):
            names = ", ".join(operand.name for operand in operands)
            raise Misfit(f"{self.name} takes {len(operands)} operands ({names}), not {len(found)}")
        for at, (operand, type_) in enumerate(zip(operands, found, strict=True)):
            what = "its operand" if len(operands) == 1 else f'operand "{operand.name}"'
            if type_.dtype != operand.dtype:
                raise Misfit(f"{what} must be {operand.dtype}, not {type_}", _dtype_help(type_), at)
            axes.match(operand.axes, type_, at, what)
            if type_.size is not None:
                axes.bound.setdefault("size", type_.size)
        axes.bound["rank"] = len(found[0].shape) if found else 0
        self.check(axes)
        return Signature(self, found, axes, self.infer(axes, found))

    def check(self, axes: Axes) -> None:
        """Raise `Misfit` where settings and axes do not go together."""

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The types of the results; by default read from the `results` patterns."""
        return tuple(TensorType("float", axes.shape(pattern)) for pattern in self.results)

    def masked(self, axes: Axes) -> str | None:
        """The symbolic axis, if any, whose padding must be told to this declaration."""
        return None

    def __str__(self) -> str:
        given = [f"{name}={shown_value(value)}" for name, value in self.values().items()]
        return f"{self.name}({', '.join(given)})" if given else self.name


@dataclass(frozen=True)
class Setting:
    """What may be given for one setting."""

    name: str
    kinds: tuple[type, ...]
    optional: bool
    default: Any
    bounds: dict[str, Any]
    item: type = int  # of a list

    @classmethod
    def of(cls, field: dataclasses.Field[Any], hint: Any) -> Setting:
        options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        kinds = tuple(typing.get_origin(option) or option for option in options if option is not type(None))
        items = [typing.get_args(option)[0] for option in options if typing.get_origin(option) is tuple]
        return cls(field.name, kinds, type(None) in options, field.default, dict(field.metadata), *items)

    @property
    def required(self) -> bool:
        return self.default is MISSING

    def problem(self, value: Any) -> str | None:
        """What is wrong with a value, or None."""
        if not self._is_of_kind(value):
            return f"must be {self.described()}, not {shown_briefly(value)}"
        bounds = self.bounds
        if isinstance(value, str):
            return self._choice_problem(value)
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, float) and not math.isfinite(number):
                return f"must be a finite number, not {number}"
            if bounds.get("min") is not None and number < bounds["min"]:
                return f"must be at least {bounds['min']}, not {number}"
            if bounds.get("max") is not None and number > bounds["max"]:
                return f"must be at most {bounds['max']}, not {number}"
            if bounds.get("below") is not None and number >= bounds["below"]:
                return f"must be below {bounds['below']}, not {number}"
        return None

    def _choice_problem(self, value: str) -> str | None:
        choices = self.bounds.get("choices", ())
        if not choices or value in choices:
            return None
        return f"must be one of {', '.join(map(shown_value, choices))}, not {shown_briefly(value)}"

    def convert(self, value: Any) -> Any:
        """A whole number where a real one is meant becomes one."""
        if isinstance(value, tuple) and self.item is float:
            return tuple(map(float, value))
        return float(value) if float in self.kinds and type(value) is int else value

    def _is_of_kind(self, value: Any) -> bool:
        if isinstance(value, bool):
            return bool in self.kinds
        if isinstance(value, int):
            return int in self.kinds or float in self.kinds
        if isinstance(value, tuple):
            kinds = (int, float) if self.item is float else (self.item,)
            return tuple in self.kinds and all(type(item) in kinds for item in value)
        return isinstance(value, self.kinds)

    def described(self) -> str:
        words = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}
        items = {int: "whole numbers", float: "numbers", str: "strings"}
        return " or ".join(words.get(kind, f"a list of {items[self.item]}") for kind in self.kinds)


@dataclass(frozen=True)
class Signature:
    """A declaration at one use: the types that go in, the axes they bind, the types that come out."""

    declaration: Any
    operands: tuple[TensorType, ...]
    axes: Axes
    results: tuple[TensorType, ...]

    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights by name. Raises `Misfit` where an axis has no fixed length."""
        shapes = {}
        for weight in self.declaration.all_weights():
            shape = self.axes.shape(weight.axes)
            for axis in shape:
                if not isinstance(axis, int):
                    reason = f'{self.declaration.name} has a weight along the axis "{axis}", which has no fixed length'
                    raise Misfit(reason, "give the axis a number in the input's type")
            shapes[weight.name] = typing.cast(tuple[int, ...], shape)
        return shapes

    def scale_of(self, initial: Initial) -> float:
        """The bound of a uniform start, the deviation of a normal one."""
        if not initial.fan:
            return initial.scale
        return 1 / math.sqrt(math.prod(self.axes[axis] for axis in initial.fan.split()))

    def constructor(self) -> tuple[str, list[Any], dict[str, Any]]:
        """The torch module's path and the values its constructor takes."""
        module = self.declaration.module
        positional = [self.axes[name] for name in module.positional]
        return module.path, positional, {key: self.axes[name] for key, name in module.named.items()}


def shown_value(value: Any) -> str:
    """A constant as the language writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(shown_value, value))}]"
    if isinstance(value, range):
        return f"{value.start}..{value.stop}"
    return str(value)


def shown_briefly(value: Any) -> str:
    """A constant in a message: its first members, its first letters."""
    if isinstance(value, str):
        return shown_value(value if len(value) <= MOST_LETTERS else value[:MOST_LETTERS] + "…")
    if isinstance(value, list | tuple):
        inner = [shown_briefly(item) for item in value[:MOST_MEMBERS]]
        text = ", ".join([*inner, "…"] if len(value) > MOST_MEMBERS else inner)
        return f"[{text if len(text) <= MOST_LETTERS else text[:MOST_LETTERS] + '…'}]"
    return shown_value(value)


def product(shape: tuple[Axis, ...]) -> int:
    """The number of elements; symbolic axes must have been given a length before."""
    assert all(isinstance(axis, int) for axis in shape), shape
    return math.prod(typing.cast(tuple[int, ...], shape))


def _dtype_help(found: TensorType) -> str:
    return "tokens become vectors with: -> embedding(width)" if found.dtype == "token" else ""
