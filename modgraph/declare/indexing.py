"""Which entries of its operands an entry of an op's result reads.

An op declares a `Reading` of each operand: a `Place` along each of its axes. A place is a linear function of the
indices of the result, so reshaping keeps it exact. Rules here serve most ops; axes are counted from the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from modgraph.declare.signature import Signature
from modgraph.types import Axis, Shape, place_axes

Number = int | Fraction
Limit = Number | None  # None is no bound


@dataclass(frozen=True)
class Inner:
    """An index that the op sums or searches over, from 0 to `size` − 1 (any length if None).

    `within` limits it further. Places with the same name and size have the same index.
    """

    name: str
    size: int | None
    within: Place | None = None


@dataclass(frozen=True)
class Place:
    """The places along an axis of an operand from Σ factor · index + `low` to Σ factor · index + `high`.

    An index is an axis of the result, counted from the last, or an inner one. Without an index the bounds are places.
    """

    terms: tuple[tuple[int | Inner, Number], ...] = ()
    low: Limit = 0
    high: Limit = 0


@dataclass(frozen=True)
class Reading:
    """The entries of an operand, by its number, that an entry of a result reads: a place along each axis.

    If the operand `guards`, the result reads nothing else at inner indices where the operand is known to be zero.
    """

    operand: int
    places: tuple[Place, ...]
    guards: bool = False


Indexing = tuple[tuple[Reading, ...], ...]  # for each result


@dataclass(frozen=True)
class Use:
    """An op at one use: its signature, whether the model trains, and whether its operands are one value of zeros and
    ones (`tied`)."""

    signature: Signature
    training: bool = True
    tied: bool = False
    shapes: tuple[Shape, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shapes", tuple(type_.shape for type_ in self.signature.operands))


def place_at(index: int | Inner, low: Limit = 0, high: Limit = 0) -> Place:
    """The places from index + low to index + high."""
    return Place(((index, 1),), low, high)


def everywhere(axis: Axis, name: str = "") -> Place:
    """Every place of an axis; with a name, the same one wherever a use has that name."""
    return place_at(Inner(name, axis.size)) if name else Place((), 0, None if axis.size is None else axis.size - 1)


Rule = Callable[[Any, Use], Indexing]


def read_everything(op: Any, use: Use) -> Indexing:
    """Each result reads every entry of each operand."""
    readings = tuple(Reading(at_, tuple(map(everywhere, shape))) for at_, shape in enumerate(use.shapes))
    return (readings,) * len(use.signature.results)


def read_nothing(op: Any, use: Use) -> Indexing:
    """No number of an operand matters."""
    return ((),) * len(use.signature.results)


def match_patterns(pointwise: str = "") -> Rule:
    """Read the outer axes `...` pointwise, and the axes with these letters; read everything along all others.

    Outer axes are pointwise only where the operand's pattern names axes after them, so that by convention they are the
    axes of a batch, and where the op neither masks them nor works along an axis.
    """
    letters = pointwise.split()

    def rule(op: Any, use: Use) -> Indexing:
        operands = op.match_operands(use.signature.operands)
        results = zip(op.results, use.signature.results, strict=False)
        found = []
        for pattern, type_ in results:
            kept = _name_axes(pattern, type_.shape)
            readings = []
            for number, (operand, shape) in enumerate(zip(operands, use.shapes, strict=False)):
                outer = operand.axes not in ("", "...") and "..." not in op.masks and not op.along
                places = {axis: everywhere(shape[axis]) for axis in range(-len(shape), 0)}
                for name, axis in _name_axes(operand.axes, shape).items():
                    if name in kept and (outer if isinstance(name, int) else name in letters):
                        places[axis] = place_at(kept[name])
                readings.append(Reading(number, tuple(places.values())))
            found.append(tuple(readings))
        return tuple(found) if len(found) == len(use.signature.results) else read_everything(op, use)

    return rule


def _name_axes(pattern: str, shape: Shape) -> dict[str | int, int]:
    """Name the axes of a shape by the letters of a pattern, outer ones by their number; give the place of each."""
    letters = pattern.replace("...", "").split()
    outer = range(len(shape) - len(letters))
    if not pattern.startswith("...") and len(outer):
        return {}
    return {name: place - len(shape) for place, name in enumerate((*outer, *letters))}


def read_pointwise(op: Any, use: Use) -> Indexing:
    """An entry reads the entries at its own index, where operands broadcast as in arithmetic."""
    return tuple(
        tuple(Reading(number, align_places(shape, type_.shape)) for number, shape in enumerate(use.shapes))
        for type_ in use.signature.results
    )


def align_places(shape: Shape, result: Shape) -> tuple[Place, ...]:
    """The places along the axes of an operand that broadcasts to a result."""
    positions = place_axes(shape, result)
    if positions is None:
        return tuple(map(everywhere, shape))
    pairs = zip(shape, positions, strict=True)
    return tuple(Place() if axis.size == 1 and result[to] != axis else place_at(to - len(result)) for axis, to in pairs)


def read_along(low: Limit = None, high: Limit = None) -> Rule:
    """Read from index + low to index + high along the op's axis, and pointwise along others; without bounds, read
    everything along it. Operands broadcast to the first one, whose shape is that of the result."""

    def rule(op: Any, use: Use) -> Indexing:
        result, position = use.shapes[0], use.signature.axes["position"]
        if any(len(type_.shape) != len(result) for type_ in use.signature.results):
            return read_everything(op, use)
        whole = low is None and high is None
        along = everywhere(result[position], "along") if whole else place_at(position, low, high)
        here, readings = place_at(position), []
        for number, shape in enumerate(use.shapes):
            places = align_places(shape, result)
            readings.append(Reading(number, tuple(along if place == here else place for place in places)))
        return (tuple(readings),) * len(use.signature.results)

    return rule


def read_vectors(op: Any, use: Use) -> Indexing:
    """Read everything along the last axis, and pointwise along others."""
    return _use_all(use, move_axes(use.shapes[0], lambda axis: axis, {-1: everywhere(use.shapes[0][-1])}))


def read_reduced(place: Callable[[Any, Axis], Place] = lambda op, axis: everywhere(axis, "along")) -> Rule:
    """Read some places along the op's axis, which the result lacks, by default all; pointwise along others."""

    def rule(op: Any, use: Use) -> Indexing:
        (shape, *_), position = use.shapes, use.signature.axes["position"]
        return _use_all(
            use, move_axes(shape, lambda axis: axis + (axis < position), {position: place(op, shape[position])})
        )

    return rule


def read_last(axis: Axis) -> Place:
    """The last place of an axis; any place where examples differ in length."""
    return everywhere(axis) if axis.size is None else Place((), axis.size - 1, axis.size - 1)


def read_repeated(op: Any, use: Use) -> Indexing:
    """The result has a new axis at the place of that name, along which it repeats its first operand."""
    new = use.signature.axes["place"]
    return ((Reading(0, move_axes(use.shapes[0], lambda axis: axis - (axis <= new))),),)


def follow_equation(
    terms: Iterable[str], result: str, sizes: Mapping[str, Axis], within: Mapping[str, Place] | None = None
) -> tuple[tuple[Place, ...], ...]:
    """The places of operands of a sum of products, by the letters of their axes; a letter that the result lacks is
    summed over, `within` some places."""
    index: dict[str, int | Inner] = {letter: place - len(result) for place, letter in enumerate(result)}
    summed = {letter: axis for letter, axis in sizes.items() if letter not in index}
    index |= {letter: Inner(letter, axis.size, (within or {}).get(letter)) for letter, axis in summed.items()}
    return tuple(tuple(place_at(index[letter]) for letter in term) for term in terms)


def split_index(index: int, sizes: tuple[int, ...], name: str = "part") -> tuple[Place, ...]:
    """The places along neighbouring axes of these sizes that merge, in row-major order, into one axis."""
    inner: list[tuple[Inner, int]] = []
    places, stride = [], 1
    for number, size in reversed([*enumerate(sizes)]):
        if number == 0:
            terms: tuple[tuple[int | Inner, Number], ...] = (
                (index, Fraction(1, stride)),
                *((each, Fraction(-step, stride)) for each, step in inner),
            )
            places.append(Place(terms))
        else:
            inner.append((Inner(f"{name}{number}", size), stride))
            places.append(place_at(inner[-1][0]))
        stride *= size
    return tuple(reversed(places))


def join_indices(indices: Iterable[int], sizes: tuple[int, ...]) -> Place:
    """The place along one axis that these axes of a result, of these sizes, divide in row-major order."""
    terms, stride = [], 1
    for index, size in reversed([*zip(indices, sizes, strict=True)]):
        terms.append((index, stride))
        stride *= size
    return Place(tuple(terms))


def insert_axis(place: Place, at: int) -> Place:
    """The same place for a result that has one more axis, at this position, counted from the last."""
    terms = ((index if isinstance(index, Inner) or index > at else index - 1, factor) for index, factor in place.terms)
    return replace(place, terms=tuple(terms))


def _use_all(use: Use, places: tuple[Place, ...]) -> Indexing:
    """Read every operand at the same places."""
    readings = tuple(Reading(number, places) for number in range(len(use.shapes)))
    return (readings,) * len(use.signature.results)


def move_axes(shape: Shape, to: Callable[[int], int], changed: Mapping[int, Place] | None = None) -> tuple[Place, ...]:
    """Read pointwise along the axis that `to` gives for an axis of the operand; `changed` has other places."""
    changed = changed or {}
    return tuple(changed[axis] if axis in changed else place_at(to(axis)) for axis in range(-len(shape), 0))
