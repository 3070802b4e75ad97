"""The rules of a map of weights: which weights a tensor becomes, and how its axes lie there. Needs no torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from modgraph.declare import setting
from modgraph.diagnostics import Report, Span
from modgraph.recipes.errors import BadValue, MissingKey
from modgraph.recipes.schema import Section, read_section
from modgraph.recipes.yaml_tree import Branch, Leaf
from modgraph.training.start import errors
from modgraph.training.start.name_patterns import ANY, EVERY, filled, numbers, problem_of

ARROW, STACK = "->", "#"


@dataclass(frozen=True)
class Arrangement:
    """`# in out -> out in`: names of the axes there, and the same in the order of the weight's.

    `#` is the axis that has one slice for each number of the weight's name.
    """

    there: tuple[str, ...]
    here: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Arrangement:
        """Raises `ValueError` where a text says nothing of axes."""
        there, arrow, here = text.partition(ARROW)
        found = cls(tuple(there.split()), tuple(here.split()))
        if not arrow or ARROW in here:
            raise ValueError(f"it has the axes there, one {ARROW}, and the axes here")
        twice = next((axis for axis in found.there if found.there.count(axis) > 1), None)
        if twice is not None:
            raise ValueError(f'"{twice}" names two axes')
        if STACK in found.here:
            raise ValueError(f"{STACK} is an axis there; each weight takes one slice of it")
        if sorted(found.here) != sorted(set(found.there) - {STACK}):
            raise ValueError("both sides name the same axes")
        return found

    @property
    def stack(self) -> int | None:
        """The axis there that is taken apart."""
        return self.there.index(STACK) if STACK in self.there else None

    @property
    def order(self) -> tuple[int, ...]:
        """The permutation of a slice's axes."""
        slice_axes = [axis for axis in self.there if axis != STACK]
        return tuple(map(slice_axes.index, self.here))

    def __str__(self) -> str:
        return f"{' '.join(self.there)} {ARROW} {' '.join(self.here)}"


@dataclass(frozen=True)
class Origin:
    """Where a weight comes from: a tensor of the file, how its axes lie there, and which slice of its stack it is."""

    tensor: str
    arrangement: Arrangement | None = None
    slice: int | None = None

    def __str__(self) -> str:
        return self.tensor if self.slice is None else f"{self.tensor}[{self.slice}]"


class _Arranged(Section):
    """What a tensor becomes whose axes lie otherwise than here."""

    to: str | tuple[str, ...] = setting(doc="the weights here that it becomes, a name or a list")
    axes: str | None = setting(None, doc='its axes there and here, as "# in out -> out in"; # is taken apart')


@dataclass(frozen=True)
class Rule:
    """One target of one source, and where it stands."""

    source: str
    target: str
    arrangement: Arrangement | None
    span: Span | None

    def origin(self, weight: str, values: tuple[str, ...]) -> Origin:
        """Where a weight comes from whose name has these values of `*`."""
        stacked = self.arrangement is not None and self.arrangement.stack is not None
        at = numbers(self.target, weight)[0] if stacked else None
        return Origin(filled(self.source, values), self.arrangement, at)


def read_rules(tree: Branch, report: Report) -> Iterator[Rule]:
    """The rules whose patterns mean something."""
    section = tree.items.get("weights")
    if not isinstance(section, Branch):
        meaning = "names of tensors, each with the weights here that it becomes"
        report.add(MissingKey(span=tree.span, section="a map", key="weights", meaning=meaning))
        return
    for source, item in section.items.items():
        targets, arrangement = _meant(source, item, report)
        for target in targets:
            problem = _problem(source, target, arrangement)
            if problem is None:
                yield Rule(source, target, arrangement, item.span)
            else:
                report.add(errors.BadWeightRule(span=item.span, source=source, target=target, problem=problem))


def _meant(source: str, item: Leaf | Branch, report: Report) -> tuple[tuple[str, ...], Arrangement | None]:
    """The targets of a source, and how its axes lie; no targets where that is a mistake."""
    if isinstance(item, Leaf):
        return read_words(item, source, report), None
    found = read_section(_Arranged, item, source, report)
    if found is None:
        return (), None
    targets = (found.to,) if isinstance(found.to, str) else found.to
    try:
        return targets, None if found.axes is None else Arrangement.of(found.axes)
    except ValueError as error:
        span = item.items["axes"].span
        report.add(errors.BadArrangement(span=span, axes=found.axes or "", problem=str(error)))
        return (), None


def _problem(source: str, target: str, arrangement: Arrangement | None) -> str | None:
    """What is wrong with a rule, or None."""
    problem = problem_of(source, every=False) or problem_of(target)
    if problem is not None:
        return problem
    if source.split(".").count(ANY) != target.split(".").count(ANY):
        return "both sides have the same number of *; a # stands for every number"
    if arrangement is not None and arrangement.stack is not None and target.split(".").count(EVERY) != 1:
        return f"its axes have a {STACK}, so the weight's name has one {EVERY}, for the number of the slice"
    return None


def read_words(item: Leaf | Branch, key: str, report: Report) -> tuple[str, ...]:
    """The names of one value, a word or a list of words."""
    found = item.value if isinstance(item, Leaf) else None
    words = found if isinstance(found, tuple) else (found,)
    if all(isinstance(word, str) for word in words):
        return words
    report.add(BadValue(span=item.span, key=key, problem="must be a name or a list", meaning="names of tensors"))
    return ()
