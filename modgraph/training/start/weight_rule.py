"""The rules of a map of weights: which weights a tensor becomes, and how its axes lie there. Needs no torch.

Between dots of a name, `*` is any one part, `#` every number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from modgraph.declare import setting
from modgraph.diagnostics import Report, Span
from modgraph.recipes.errors import BadValue, MissingKey
from modgraph.recipes.schema import Section, read_section
from modgraph.recipes.yaml_tree import Branch, Leaf
from modgraph.training.start import errors

ANY, EVERY = "*", "#"
ARROW, STACK = "->", "#"


def is_pattern(name: str) -> bool:
    return ANY in name or EVERY in name


def captured(pattern: str, name: str, sign: str = ANY) -> tuple[str, ...] | None:
    """What each `*` of a pattern stands for in a name, or each other sign; None if the name is none of its names."""
    parts, found = pattern.split("."), name.split(".")
    if len(parts) != len(found):
        return None
    pairs = list(zip(parts, found, strict=True))
    if not all(part in (ANY, each) or (part == EVERY and each.isdecimal()) for part, each in pairs):
        return None
    return tuple(each for part, each in pairs if part == sign)


def matches(patterns: Iterable[str], name: str) -> bool:
    """Whether one of the patterns means this name, among others."""
    return any(captured(each, name) is not None if is_pattern(each) else each == name for each in patterns)


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


@dataclass(frozen=True)
class Rule:
    """One target of one source, and where it stands."""

    source: str
    target: str
    arrangement: Arrangement | None
    span: Span | None

    @property
    def is_stacked(self) -> bool:
        """Whether each weight takes a slice of the tensor."""
        return self.arrangement is not None and self.arrangement.stack is not None

    def problem(self) -> str | None:
        """What is wrong with the rule, or None."""
        source, target = self.source.split("."), self.target.split(".")
        for parts in (source, target):
            if any(sign in part and sign != part for part in parts for sign in (ANY, EVERY)):
                return f"{ANY} and {EVERY} stand for a whole part between dots"
            if parts is source and EVERY in parts:
                return f"{EVERY} makes no sense on the side of the file"
        if source.count(ANY) != target.count(ANY):
            return "both sides have the same number of *; a # stands for every number"
        if self.is_stacked and target.count(EVERY) != 1:
            return f"its axes have a {STACK}, so the weight's name has one {EVERY}, for the number of the slice"
        return None

    def origin(self, weight: str, values: Iterable[str]) -> Origin:
        """Where a weight comes from whose name has these values of `*`."""
        numbers, left = captured(self.target, weight, EVERY) or (), iter(values)
        tensor = ".".join(next(left) if part == ANY else part for part in self.source.split("."))
        return Origin(tensor, self.arrangement, int(numbers[0]) if self.is_stacked else None)


class _Arranged(Section):
    """What a tensor becomes whose axes lie otherwise than here."""

    to: str | tuple[str, ...] = setting(doc="the weights here that it becomes, a name or a list")
    axes: str | None = setting(None, doc='its axes there and here, as "# in out -> out in"; # is taken apart')


def read_rules(tree: Branch, report: Report) -> Iterator[Rule]:
    """The rules whose patterns mean something."""
    section = tree.items.get("weights")
    if not isinstance(section, Branch):
        meaning = "names of tensors, each with the weights here that it becomes"
        report.add(MissingKey(span=tree.span, section="a map", key="weights", meaning=meaning))
        return
    for source, item in section.items.items():
        for rule in _rules_of(source, item, report):
            problem = rule.problem()
            if problem is None:
                yield rule
            else:
                fault = errors.BadWeightRule(span=rule.span, source=source, target=rule.target, problem=problem)
                report.add(fault)


def _rules_of(source: str, item: Leaf | Branch, report: Report) -> list[Rule]:
    """A rule for each target of a source; none where what is said of it is a mistake."""
    if isinstance(item, Leaf):
        return [Rule(source, target, None, item.span) for target in read_words(item, source, report)]
    found = read_section(_Arranged, item, source, report)
    if found is None:
        return []
    try:
        arrangement = None if found.axes is None else Arrangement.of(found.axes)
    except ValueError as error:
        span = item.items["axes"].span
        report.add(errors.BadArrangement(span=span, axes=found.axes, problem=str(error)))
        return []
    targets = (found.to,) if isinstance(found.to, str) else found.to
    return [Rule(source, target, arrangement, item.span) for target in targets]


def read_words(item: Leaf | Branch, key: str, report: Report) -> tuple[str, ...]:
    """The names of one value, a word or a list of words."""
    found = item.value if isinstance(item, Leaf) else None
    words = found if isinstance(found, tuple) else (found,)
    if all(isinstance(word, str) for word in words):
        return words
    report.add(BadValue(span=item.span, key=key, problem="must be a name or a list", meaning="names of tensors"))
    return ()
