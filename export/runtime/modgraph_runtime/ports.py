"""The inputs and outputs of a bundle as its manifest describes them, and checks of arrays against them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

LENGTH = "length"
EDGE = "edge"
LONGEST = 2**53 - 1  # integers that JavaScript represents exactly
BATCH = "the batch"  # a name that no axis of a spec can have


class BundleError(Exception):
    """A file is not a bundle, or arrays do not fit. The error has the problem, and the way out if there is one."""

    def __init__(self, reason: str, way_out: str = "") -> None:
        super().__init__(f"{reason}; {way_out}" if way_out else reason)
        self.reason = reason
        self.way_out = way_out


@dataclass(frozen=True)
class Port:
    """An input or output, for one example. `shape` has sizes, and names of axes of any length.

    `dtype` is `float`, `token`, `class`, `length` or `edge`; `size` is the number of words or classes. An output for a
    `target` has one value for each class along its last axis, and `classes` has their names if they are known. `tensor`
    is the name in the ONNX graph. `along` is the axis that a length measures. Edges are pairs of places along two axes,
    `ends`.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    size: int | None
    tensor: str
    target: str | None = None
    classes: tuple[str, ...] = ()
    along: str = ""
    ends: tuple[int | str, ...] = ()

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any], classes: Mapping[str, Any]) -> Port:
        """Read a port from a manifest. Raises `ValueError` if it is invalid."""
        name, dtype, shape = entry["name"], entry["dtype"], entry["shape"]
        size, tensor, target = entry.get("size"), entry.get("tensor", name), entry.get("target")
        names, along = classes.get(name, []), entry.get("of", "")
        if not all(isinstance(text, str) for text in (name, dtype, tensor, target or "", along, *names)):
            raise ValueError("a name is no text")
        if dtype not in ("float", "token", "class", LENGTH, EDGE) or not (size is None or type(size) is int):
            raise ValueError(f'"{name}" has an unknown type')
        axes = shape if isinstance(shape, list) else [None]
        if (target and not axes) or not all(map(_is_axis, axes)):
            raise ValueError(f'"{name}" has an unknown shape')
        ends = entry.get("ends", [])
        if not isinstance(ends, list) or len(ends) != 2 * (dtype == EDGE) or not all(map(_is_axis, ends)):
            raise ValueError(f'"{name}" has unknown ends')
        return cls(name, dtype, tuple(shape), size, tensor, target, tuple(names), along, tuple(ends))

    @property
    def kind(self) -> np.dtype[Any]:
        return np.dtype(np.float32 if self.dtype == "float" else np.int64)

    def __str__(self) -> str:
        axes = [*self.shape[: -1 if self.ends else None], *self.ends, *([] if self.size is None else [self.size])]
        return f"{self.dtype}[{', '.join(map(str, axes))}]" if axes else self.dtype


def _is_axis(axis: Any) -> bool:
    return _is_length(axis) or (isinstance(axis, str) and axis != "")


def _is_length(axis: Any) -> bool:
    return type(axis) is int and 1 <= axis <= LONGEST


def check_axes(inputs: Iterable[Port], outputs: Iterable[Port], longest: Mapping[str, Any]) -> None:
    """Raises `ValueError` for an axis of any length that no input has, or an invalid bound."""
    given = [*inputs]
    known = {axis for port in given for axis in port.shape if isinstance(axis, str)}
    named = {axis for port in outputs for axis in port.shape if isinstance(axis, str)}
    named |= {port.along for port in given if port.dtype == LENGTH}
    if named - known:
        raise ValueError(f'no input has the axis "{min(named - known)}"')
    if not all(map(_is_length, longest.values())):
        raise ValueError("the longest length of an axis is no length")


@dataclass(frozen=True)
class Inputs:
    """The inputs of a model. `longest` bounds axes that cannot have any length."""

    ports: Mapping[str, Port]
    longest: Mapping[str, int]

    def __str__(self) -> str:
        return ", ".join(f"{name} {port}" for name, port in self.ports.items() if port.dtype != LENGTH)

    def fit(self, given: Mapping[str, Any]) -> tuple[dict[str, Array], dict[str, int]]:
        """Convert arrays to what the model takes, with lengths filled in; and give the length of each axis.

        Padding may contain anything: values that the type does not allow become zero. Raises `BundleError` if an array
        is missing, unknown or does not fit.
        """
        ends = {name: port for name, port in self.ports.items() if port.dtype == LENGTH}
        if not isinstance(given, Mapping):
            example = next((name for name in self.ports if name not in ends), "")
            raise BundleError(f"arrays must be given by name; the inputs: {self}", f'run({{"{example}": …}})')
        for name in given:
            if name not in self.ports:
                raise BundleError(f'the model has no input "{name}"; its inputs: {", ".join([str(self), *ends])}')
        raw, lengths = dict[str, Array](), dict[str, int]()
        for name, port in self.ports.items():
            if name not in ends and name not in given:
                raise BundleError(f'the input "{name}" is missing; the inputs: {self}')
            if name not in ends:
                raw[name] = _array(given[name], name)
                self._check_shape(raw[name], port, lengths)
        full = {name: _length(port, given, lengths) for name, port in ends.items()}
        padded = {port.along: full[name] for name, port in ends.items() if name in given}
        arrays = {name: _cast(array, self.ports[name], padded) for name, array in raw.items()}
        nodes = {port.along: full[name] for name, port in ends.items()}
        for name, port in self.ports.items():
            if port.ends:
                arrays[name] = _check_ends(arrays[name], port, padded, lengths, nodes)
        return arrays | full, lengths

    def _check_shape(self, array: Array, port: Port, lengths: dict[str, int]) -> None:
        wanted = (BATCH, *port.shape)
        found = list(array.shape)
        if array.ndim != len(wanted):
            raise BundleError(f'"{port.name}" has the shape {found}; {port} needs {len(wanted)} axes, examples first')
        for at, (axis, length) in enumerate(zip(wanted, found, strict=True)):
            if isinstance(axis, int):
                if axis != length:
                    where = f"needs {axis} where it has {length} (axis {at})"
                    raise BundleError(f'"{port.name}" has the shape {found}; {port} {where}')
                continue
            if lengths.setdefault(axis, length) != length:
                raise BundleError(f'"{port.name}" has {length} along "{axis}", but another input has {lengths[axis]}')
            if axis != BATCH and not 1 <= length <= self.longest.get(axis, length):
                limit = f"1 to {self.longest[axis]}" if axis in self.longest else "at least 1"
                raise BundleError(f'"{port.name}" has {length} along "{axis}"; the model takes {limit}')


def _array(value: Any, name: str) -> Array:
    try:
        return np.asarray(value)
    except ValueError as error:
        raise BundleError(f'"{name}" is no array: its rows differ in length') from error


def _cast(array: Array, port: Port, padded: Mapping[str, Array]) -> Array:
    """Convert an array to the type of its port, with zeros for invalid values in padding. `padded` has lengths by axis.

    Raises `BundleError`.
    """
    if array.dtype.kind not in ("fiub" if port.dtype == "float" else "iu"):
        raise BundleError(f'"{port.name}" holds {array.dtype}; {port} needs {port.kind}')
    with np.errstate(over="ignore"):
        cast = np.ascontiguousarray(array, dtype=port.kind).reshape(array.shape)
    wrong = ~np.isfinite(cast) if port.size is None else (array < 0) | (array >= port.size)
    if not wrong.any():
        return cast
    axes = enumerate(port.shape, start=1)
    unpadded = find_unpadded(
        array, [(at, axis) for at, axis in axes if isinstance(axis, str) and axis in padded], padded
    )
    if (wrong & unpadded).any():
        place, values = ", ".join(map(str, np.argwhere(wrong & unpadded)[0])), array[unpadded]
        problem = f"values that are infinite or NaN, first at [{place}]"
        if port.size is not None:
            problem = f"values from {values.min()} to {values.max()}; {port} allows 0 to {port.size - 1}"
        raise BundleError(f'"{port.name}" holds {problem}')
    return np.where(wrong, np.zeros((), port.kind), cast)


def _check_ends(
    edges: Array, port: Port, padded: Mapping[str, Array], lengths: Mapping[str, int], nodes: Mapping[str, Array]
) -> Array:
    """Zero the edges of padding, and check that the others are at nodes that their examples have; `nodes` has their
    numbers by axis. Raises `BundleError`."""
    axis = port.shape[0]
    padding = [(1, axis)] if isinstance(axis, str) and axis in padded else []
    is_edge = find_unpadded(edges[..., 0], padding, padded)
    for at, end in enumerate(port.ends):
        most = end if isinstance(end, int) else lengths.get(end)
        if most is None:
            continue
        own = np.broadcast_to(nodes.get(str(end), np.full(len(edges), most)), len(edges))
        wrong = is_edge & ((edges[..., at] < 0) | (edges[..., at] >= own[:, None]))
        if wrong.any():
            example, place = np.argwhere(wrong)[0]
            verb, found = ("begins", "ends")[at], edges[example, place, at]
            has = f'example {example} has 0 to {own[example] - 1} along "{end}"'
            raise BundleError(f'"{port.name}" has an edge that {verb} at {found}, at [{example}, {place}]; {has}')
    return np.where(is_edge[..., None], edges, np.zeros((), port.kind))


def find_unpadded(array: Array, padding: Iterable[tuple[int, str]], lengths: Mapping[str, Array]) -> NDArray[np.bool_]:
    """Make a mask of an array [B, …] that is true outside of padding; `padding` names the lengths of some axes."""
    unpadded = np.ones(array.shape, bool)
    for at, name in padding:
        positions = np.arange(array.shape[at]).reshape([-1 if each == at else 1 for each in range(array.ndim)])
        unpadded &= positions < lengths[name].reshape(-1, *[1] * (array.ndim - 1))
    return unpadded


def _length(port: Port, given: Mapping[str, Any], lengths: Mapping[str, int]) -> Array:
    """Return the length of each example along an axis, at most the axis; all are full if none are given."""
    name, examples, longest = port.name, lengths[BATCH], lengths[port.along]
    if name not in given:
        return np.full(examples, longest, np.int64)
    length = _array(given[name], name)
    if length.shape != (examples,) or length.dtype.kind not in "iu":
        raise BundleError(f'"{name}" must be one whole number for each of {examples} examples')
    if length.size and (length.min() < 0 or length.max() > longest):
        raise BundleError(f'"{name}" holds {length.min()} to {length.max()}; it must lie between 0 and {longest}')
    return length.astype(np.int64)
