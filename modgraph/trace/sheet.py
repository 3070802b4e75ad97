"""The paper that pictures are drawn on: a figure on which parts are placed in inches, and its file."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.inspect.quote import drop_invalid_xml
from modgraph.trace.errors import TooTall
from modgraph.version import VERSION

CELL = 1.15  # inches of an image
LETTER = 0.079  # inches that a bold letter takes
DARK = 0.6  # of a scale of colours, from where on words are white
WORDS: dict[str, Any] = {"parse_math": False, "fontsize": 9}
SETTINGS: Any = {"svg.hashsalt": "modgraph", "font.family": "DejaVu Sans", "text.parse_math": False}
MAKER = f"modgraph {VERSION}"  # by which a picture is known to be ours
METADATA: dict[str, dict[str, Any]] = {  # without a date
    ".png": {"Software": MAKER},
    ".svg": {"Creator": MAKER, "Date": None},
    ".pdf": {"Creator": MAKER, "CreationDate": None},
}


class Sheet:
    """A figure on which boxes are placed in inches, from the left and from the top."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.figure = Figure(figsize=(width, height), facecolor="white")
        FigureCanvasAgg(self.figure)
        self._paper: Any = self.figure.add_axes((0, 0, 1, 1))  # for images: axes of their own take longer than all else
        self._paper.set(xlim=(0, width), ylim=(height, 0))
        self._paper.set_axis_off()

    def axes(self, left: float, top: float, width: float, height: float) -> Any:
        bottom = self.height - top - height
        place = (left / self.width, bottom / self.height, width / self.width, height / self.height)
        return self.figure.add_axes(place)

    def image(self, left: float, top: float, pixels: NDArray[Any]) -> None:
        """An image in the middle of a cell."""
        self.lay_over(left, top, pixels, pixels, cmap="gray", vmin=0, vmax=1)

    def lay_over(self, left: float, top: float, map_HW: NDArray[Any], pixels: NDArray[Any], **style: Any) -> None:
        """A map stretched over the whole of an image."""
        height, width = (CELL * size / max(pixels.shape[:2]) for size in pixels.shape[:2])
        left, top = left + (CELL - width) / 2, top + (CELL - height) / 2
        self._paper.imshow(map_HW, extent=(left, left + width, top + height, top), aspect="auto", **style)

    def heat_map(
        self,
        left: float,
        top: float,
        values: Sequence[Sequence[float]],
        cell: tuple[float, float],
        most: float,
        words: Callable[[int, int], str] | None = None,
        **style: Any,
    ) -> Any:
        """Values [rows, columns] as colours in cells of a width and height, each with its percents or its words."""
        table = np.array(values)
        axes = self.axes(left, top, table.shape[1] * cell[0], table.shape[0] * cell[1])
        axes.imshow(table, cmap="Blues", vmin=0, vmax=most, aspect="auto")
        axes.set_axis_off()
        for (row, column), value in np.ndenumerate(table):
            text = f"{100 * value:.0f}" if words is None else words(row, column)
            colour = "white" if value > DARK * most else "black"
            axes.text(column, row, text, color=colour, ha="center", va="center", **{**WORDS, **style})
        return axes

    def name_rows(self, left: float, top: float, height: float, names: Sequence[str]) -> None:
        """Names that end left of rows of a height."""
        for at, name in enumerate(names):
            self.write(left - 0.08, top + (at + 0.5) * height, name, ha="right", va="center")

    def write(self, left: float, top: float, text: str, **style: Any) -> None:
        self.figure.text(left / self.width, 1 - top / self.height, text, **{**WORDS, **style})

    def title(self, top: float, text: str) -> None:
        """Bold, and cut where the sheet ends."""
        self.write(0.15, top, shortened(text, int(self.width / LETTER)), weight="bold")


def name_lines(axes: Any) -> None:
    """The scale of a chart from zero up, and the names of its lines on the right."""
    axes.set_ylim(0, None)
    axes.tick_params(labelsize=8)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.02), frameon=False, fontsize=WORDS["fontsize"])


@dataclass(frozen=True)
class Part:
    """A part of a picture: inches that it takes, what draws it from its left and top, and rows that are looked at."""

    width: float
    height: float
    draw: Callable[[Sheet, float, float], None]
    rows: int = 0


def sheet_of(parts: Sequence[Part], above: float = 0, below: float = 0, page: float | None = None) -> Sheet:
    """Parts below each other, or beside each other as far as the widest, or a page, leaves room."""
    widest = 0 if page is None else max(page, *(part.width for part in parts))
    placed: list[tuple[Part, float, float]] = []
    left, top, down = 0.0, above, above
    for part in parts:
        if left and left + part.width > widest:
            left, top = 0.0, down
        placed.append((part, left, top))
        left, down = left + part.width, max(down, top + part.height)
    sheet = Sheet(max(left + part.width for part, left, _ in placed), down + below)
    for part, left, top in placed:
        part.draw(sheet, left, top)
    return sheet


def file_of(parts: Sequence[Part], suffix: str, none: Diagnostic, most: int | None = None, **layout: Any) -> bytes:
    """The content of a `.png`, `.svg` or `.pdf` file, the same each time.

    Raises `ModgraphError`: `none` if there are no parts, another if they have more than `most` rows.
    """
    if not parts:
        raise ModgraphError([none])
    rows = sum(part.rows for part in parts)
    if most is not None and rows > most:
        raise ModgraphError([TooTall(rows=rows, most=most)])
    buffer = io.BytesIO()
    with rc_context(SETTINGS):
        sheet = sheet_of(parts, **layout)
        sheet.figure.savefig(buffer, format=suffix.removeprefix("."), dpi=110, metadata=METADATA[suffix])
    content = buffer.getvalue()  # where matplotlib quotes texts, but for what XML has no way to say
    return drop_invalid_xml(content.decode()).encode() if suffix == ".svg" else content


def colours_of(modules: int) -> NDArray[Any]:
    """Red, green, blue and opacity of every module, [modules, 4], as different as so many can be."""
    for name, most in (("tab10", 10), ("tab20", 20)):
        if modules <= most:
            return np.asarray(colormaps[name](np.arange(modules)))
    return np.asarray(colormaps["turbo"](np.linspace(0, 1, modules)))


def shortened(name: str, longest: int = 12) -> str:
    return name if len(name) <= longest else name[: longest - 1] + "…"
