"""A trace as a picture: gates as maps over the image, after Hu et al. (ICLR 2024), figures 4 and 8.

A row is a module on an example, a column a round.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from modgraph.diagnostics import ModgraphError
from modgraph.tools.trace.errors import TooTall
from modgraph.tools.trace.maps import Maps, maps_of
from modgraph.tools.trace.rounds import shown_rounds
from modgraph.tools.trace.trace import Trace

MOST_ROWS = 128
COLOURS = "viridis"
STRENGTH = 0.65  # opacity of a map over the image
LIFT = 0.35  # of black under a map, or else colours would not be those of the scale
LONGEST_NAME = 12
LETTER = 0.079  # inches that a bold letter takes
WORDS: dict[str, Any] = {"parse_math": False, "fontsize": 9}
SETTINGS: Any = {"svg.hashsalt": "modgraph", "font.family": "DejaVu Sans"}
UNDATED: dict[str, dict[str, Any]] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}

# in inches
CELL, GAP, EXAMPLE_GAP = 1.15, 0.08, 0.22
LEFT, NAMES, RIGHT, TOP, BOTTOM, ROUTE = 1.8, 0.95, 0.95, 0.1, 0.15, 0.62


def picture_of(trace: Trace, suffix: str) -> bytes:
    """The content of a `.png`, `.svg` or `.pdf` file. Raises `ModgraphError`."""
    maps = maps_of(trace)
    rows = len(trace) * sum(each.route.modules for each in maps)
    if rows > MOST_ROWS:
        raise ModgraphError([TooTall(rows=rows, most=MOST_ROWS)])
    buffer = io.BytesIO()
    with rc_context(SETTINGS):
        _drawn(trace, maps).savefig(buffer, format=suffix.removeprefix("."), dpi=110, metadata=UNDATED[suffix])
    return buffer.getvalue()


@dataclass(frozen=True)
class Sheet:
    """A figure on which boxes are placed in inches, from the left and from the top."""

    figure: Figure
    width: float
    height: float

    def axes(self, left: float, top: float, width: float = CELL, height: float = CELL) -> Any:
        bottom = self.height - top - height
        place = (left / self.width, bottom / self.height, width / self.width, height / self.height)
        return self.figure.add_axes(place)

    def write(self, left: float, top: float, text: str, **style: Any) -> None:
        self.figure.text(left / self.width, 1 - top / self.height, text, **WORDS, **style)


def _drawn(trace: Trace, maps: list[Maps]) -> Figure:
    columns = max(len(shown_rounds(each.route.rounds)) for each in maps)
    width = LEFT + CELL + NAMES + columns * (CELL + GAP) + RIGHT
    height = TOP + sum(ROUTE + len(trace) * _height(each) for each in maps) + BOTTOM
    figure = Figure(figsize=(width, height), facecolor="white")
    FigureCanvasAgg(figure)
    sheet, top = Sheet(figure, width, height), TOP
    for each in maps:
        _draw_route(sheet, trace, each, top)
        top += ROUTE + len(trace) * _height(each)
    return figure


def _height(maps: Maps) -> float:
    """Of one example."""
    return maps.route.modules * (CELL + GAP) + EXAMPLE_GAP


def _draw_route(sheet: Sheet, trace: Trace, maps: Maps, top: float) -> None:
    """A title, then every example, and the scale of colours."""
    route = maps.route
    title = f"{route.name}: {route.pool} by {route.router}, {trace.split}"
    sheet.write(0.15, top + 0.2, shortened(title, int(sheet.width / LETTER)), weight="bold")
    for left, words in _titles(maps):
        sheet.write(left + CELL / 2, top + ROUTE - 0.06, words, ha="center")
    for example in range(len(trace)):
        _draw_example(sheet, trace, maps, example, top + ROUTE + example * _height(maps))
    last = _map_left(len(shown_rounds(route.rounds)))
    bar = sheet.axes(last + 0.08, top + ROUTE, 0.12, route.modules * (CELL + GAP) - GAP)
    sheet.figure.colorbar(ScalarMappable(Normalize(*maps.scale), COLOURS), cax=bar)
    bar.tick_params(labelsize=8)
    bar.set_title("gate", **WORDS)


def _titles(maps: Maps) -> Iterator[tuple[float, str]]:
    yield LEFT, "image"
    rounds = shown_rounds(maps.route.rounds)
    for column, at in enumerate(rounds):
        yield _map_left(column), f"round {at + 1}" if len(rounds) > 1 else "gates"


def _map_left(column: int) -> float:
    return LEFT + CELL + NAMES + column * (CELL + GAP)


def _draw_example(sheet: Sheet, trace: Trace, maps: Maps, example: int, top: float) -> None:
    """The image with its classes, then a row of maps for each module."""
    pixels = picture(trace.arrays.values[maps.image][example])
    sheet.write(LEFT - 0.12, top + CELL / 2, _label(trace, example), ha="right", va="center", linespacing=1.4)
    _show(sheet.axes(LEFT, top), pixels)
    for module in range(maps.route.modules):
        down = top + module * (CELL + GAP)
        name = f"{shortened(maps.route.pool.rpartition('.')[2])}.{module}"
        sheet.write(_map_left(0) - 0.08, down + CELL / 2, name, ha="right", va="center")
        for column, at in enumerate(shown_rounds(maps.route.rounds)):
            axes = sheet.axes(_map_left(column), down)
            _show(axes, LIFT + (1 - LIFT) * pixels)
            _lay_over(axes, maps.gates[at, example, :, :, module], pixels.shape, Normalize(*maps.scale))


def _show(axes: Any, pixels: NDArray[Any]) -> None:
    axes.imshow(pixels, cmap="gray", vmin=0, vmax=1)
    axes.set_axis_off()


def _lay_over(axes: Any, gates_HW: NDArray[Any], shape: tuple[int, ...], scale: Normalize) -> None:
    """A map stretched over the whole image."""
    extent = (-0.5, shape[1] - 0.5, shape[0] - 0.5, -0.5)
    axes.imshow(gates_HW, cmap=COLOURS, norm=scale, alpha=STRENGTH, extent=extent, interpolation="bilinear")


def picture(image: NDArray[Any]) -> NDArray[Any]:
    """An image [C, H, W] from 0 to 1: in colour [H, W, 3] if it has three channels, or else their mean [H, W]."""
    pixels = image.transpose(1, 2, 0) if len(image) == 3 else image.mean(0)
    low, high = float(pixels.min()), float(pixels.max())
    return (pixels - low) / (high - low) if high > low else np.zeros_like(pixels)


def _label(trace: Trace, example: int) -> str:
    lines = [f"example {example}"]
    if trace.verdict is not None:
        true, predicted = trace.verdict.true[example], trace.verdict.predicted[example]
        lines += [f"true {shortened(true)}", f"predicted {shortened(predicted)}"]
    return "\n".join(lines)


def shortened(name: str, longest: int = LONGEST_NAME) -> str:
    return name if len(name) <= longest else name[: longest - 1] + "…"
