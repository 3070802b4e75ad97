"""The part of a picture that one route has: a title, then a row for each example that begins with its image."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from modgraph.trace.maps import Maps
from modgraph.trace.sheet import CELL, GAP, Sheet, pixels_of, shortened
from modgraph.trace.trace import Trace

# in inches
EXAMPLE_GAP = 0.22
LEFT, NAMES, RIGHT, TOP, BOTTOM, ROUTE = 1.8, 0.95, 0.95, 0.1, 0.15, 0.62


class Section(ABC):
    """One route's part. `rows` are those of one example."""

    names = NAMES  # between the image and its maps

    def __init__(self, trace: Trace, maps: Maps) -> None:
        self.trace = trace
        self.maps = maps
        self.route = maps.route

    @property
    @abstractmethod
    def rows(self) -> int: ...

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """The titles over the maps."""

    @abstractmethod
    def draw_maps(self, sheet: Sheet, example: int, top: float, pixels: NDArray[Any]) -> None:
        """The maps of one example."""

    @abstractmethod
    def draw_legend(self, sheet: Sheet, top: float) -> None:
        """What colours mean, right of the maps."""

    @property
    def width(self) -> float:
        return self.left_of(len(self.columns)) + RIGHT

    @property
    def height(self) -> float:
        """How much of the sheet one example takes."""
        return self.rows * (CELL + GAP) + EXAMPLE_GAP

    def left_of(self, column: int) -> float:
        return LEFT + CELL + self.names + column * (CELL + GAP)

    def draw(self, sheet: Sheet, top: float) -> None:
        """The title, every example, and the legend."""
        route = self.route
        sheet.title(top + 0.2, f"{route.name}: {route.pool} by {route.router}, {self.trace.split}")
        for left, words in self._titles():
            sheet.write(left + CELL / 2, top + ROUTE - 0.06, words, ha="center")
        for example in range(len(self.trace)):
            down = top + ROUTE + example * self.height
            pixels = pixels_of(self.trace.arrays.values[self.maps.image][example])
            words = _label(self.trace, example)
            sheet.write(LEFT - 0.12, down + CELL / 2, words, ha="right", va="center", linespacing=1.4)
            sheet.image(LEFT, down, pixels)
            self.draw_maps(sheet, example, down, pixels)
        self.draw_legend(sheet, top + ROUTE)

    def _titles(self) -> Iterator[tuple[float, str]]:
        yield LEFT, "image"
        for column, words in enumerate(self.columns):
            yield self.left_of(column), words


def _label(trace: Trace, example: int) -> str:
    lines = [f"example {example}"]
    lines += [f"{name} {shortened(words[example])}" for name, words in trace.arrays.groups.items()]
    if trace.verdict is not None:
        true, predicted = trace.verdict.true[example], trace.verdict.predicted[example]
        lines += [f"true {shortened(true)}", f"predicted {shortened(predicted)}"]
    return "\n".join(lines)
