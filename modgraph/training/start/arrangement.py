"""Which slice or part of a tensor becomes a weight, and in which order of axes. Needs no torch."""

from __future__ import annotations

import re
from dataclasses import dataclass

ARROW, STACK = "->", "#"
AXIS = re.compile(r"\([^()]*\)|[^\s()]+")  # of a tensor in the file, or several that it holds as one


@dataclass(frozen=True)
class Arrangement:
    """The order of a tensor's axes as text: `# in (half out) -> out in` names them in the file, and in the weight.

    `#` is the stacked axis, which has one slice for each number in the weight's name. Parentheses hold an axis that
    several weights share, each with a part: one after the other, `(half out)`, or interleaved, `(out half)`. Or they
    hold axes of the weight that are one in the file: `(group member) in -> group member in`.
    """

    text: str
    rank: int  # in the file
    stack: int | None  # the axis in the file that is unstacked
    order: tuple[int, ...]  # of a slice's axes, those that are one in the file by themselves
    merged: tuple[tuple[int, ...], ...]  # the weight's axes in each of a slice's axes
    divided: tuple[int, int] | None = None  # the axis of parts, in the file and in the weight
    interleaved: bool = False

    @classmethod
    def parse(cls, text: str) -> Arrangement:
        """Raises `ValueError` for invalid text."""
        left, arrow, right = text.partition(ARROW)
        groups, here = [each.strip("()").split() for each in AXIS.findall(left)], right.split()
        if not arrow or ARROW in right:
            raise ValueError(f"write the axes in the file, one {ARROW}, and the axes of the weight")
        if {"(", ")"} & {*AXIS.sub("", left), *right}:
            raise ValueError("parentheses hold two axes in the file, (half out)")
        every = [axis for group in groups for axis in group]
        twice = next((axis for axis in every if every.count(axis) > 1), None)
        if twice is not None:
            raise ValueError(f'"{twice}" names two axes')
        if STACK in here:
            raise ValueError(f"{STACK} must be an axis in the file; each weight takes one slice of it")
        several = [group for group, each in zip(groups, AXIS.findall(left), strict=True) if each[0] == "("]
        cut = [group for group in several if not (len(group) > 1 and {*group} <= {*here})]
        if any(len(group) != 2 or STACK in group or len({*group} & {*here}) != 1 for group in cut) or len(cut) > 1:
            raise ValueError("once may parentheses hold two axes, of which the weight has one; others hold its own")
        there = [[axis for axis in group if axis in here] or group for group in groups]
        sliced = [group for group in there if group != [STACK]]
        single = [axis for group in sliced for axis in group]
        if sorted(here) != sorted(single):
            raise ValueError("both sides must name the same axes")
        at = groups.index(cut[0]) if cut else 0
        divided = (at, here.index(there[at][0])) if cut else None
        interleaved = bool(cut) and cut[0][0] in here
        stack = there.index([STACK]) if [STACK] in there else None
        merged = tuple(tuple(map(here.index, group)) for group in sliced)
        order = tuple(map(single.index, here))
        return cls(" ".join(text.split()), len(there), stack, order, merged, divided, interleaved)


@dataclass(frozen=True)
class Part:
    """Those of the `whole` places along an axis that one weight takes: `size` from `start` on, each `step` further."""

    start: int
    size: int
    step: int
    whole: int


@dataclass(frozen=True)
class Origin:
    """The origin of a weight: a tensor of the file, the order of its axes, the slice of its stack, and its part."""

    tensor: str
    arrangement: Arrangement | None = None
    slice: int | None = None
    part: Part | None = None

    def __str__(self) -> str:
        return self.tensor if self.slice is None else f"{self.tensor}[{self.slice}]"
