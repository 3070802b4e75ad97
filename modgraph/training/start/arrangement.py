"""How the axes of a tensor made elsewhere become those of a weight. Needs no torch."""

from __future__ import annotations

from dataclasses import dataclass

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
