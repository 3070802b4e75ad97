"""Sheets for pictures: a figure with boxes at positions in inches, and its file."""

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
LETTER = 0.079  # inches of a bold letter
MOST_LETTERS = 80  # of a title
TOP, BOTTOM, TITLE = 0.1, 0.15, 0.35  # inches above and below all parts, and of a title
WORDS: dict[str, Any] = {"parse_math": False, "fontsize": 9}
SETTINGS: Any = {"svg.hashsalt": "modgraph", "font.family": "DejaVu Sans", "text.parse_math": False}
MAKER = f"modgraph {VERSION}"  # marks a picture as written by modgraph
METADATA: dict[str, dict[str, Any]] = {  # without a date
    ".png": {"Software": MAKER},
    ".svg": {"Creator": MAKER, "Date": None},
    ".pdf": {"Creator": MAKER, "CreationDate": None},
}


class Sheet:
    """A figure with boxes at positions in inches, from the left and from the top."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.figure = Figure(figsize=(width, height), facecolor="white")
        FigureCanvasAgg(self.figure)
        self._paper: Any = self.figure.add_axes((0, 0, 1, 1))  # for all images: axes of their own are slow
        self._paper.set(xlim=(0, width), ylim=(height, 0))
        self._paper.set_axis_off()

    def axes(self, left: float, top: float, width: float, height: float) -> Any:
        bottom = self.height - top - height
        place = (left / self.width, bottom / self.height, width / self.width, height / self.height)
        return self.figure.add_axes(place)

    def image(self, left: float, top: float, pixels: NDArray[Any]) -> None:
        """Draw an image in the middle of a cell."""
        self.lay_over(left, top, pixels, pixels, cmap="gray", vmin=0, vmax=1)

    def lay_over(self, left: float, top: float, map_HW: NDArray[Any], pixels: NDArray[Any], **style: Any) -> None:
        """Draw a map over the whole of an image."""
        height, width = (CELL * size / max(pixels.shape[:2]) for size in pixels.shape[:2])
        left, top = left + (CELL - width) / 2, top + (CELL - height) / 2
        self._paper.imshow(map_HW, extent=(left, left + width, top + height, top), aspect="auto", **style)

    def write(self, left: float, top: float, text: str, **style: Any) -> None:
        self.figure.text(left / self.width, 1 - top / self.height, text, **{**WORDS, **style})

    def title(self, top: float, text: str, left: float = 0) -> None:
        """Write a bold title, shortened to the width of the sheet."""
        self.write(left + 0.15, top, shorten(text, int((self.width - left) / LETTER)), weight="bold")


@dataclass(frozen=True)
class Part:
    """A part of a picture: its size in inches, a function that draws it at a left and a top, and its number of rows."""

    width: float
    height: float
    draw: Callable[[Sheet, float, float], None]
    rows: int = 0


def arrange_parts(parts: Sequence[Part], page: float = 0, title: str = "") -> Part:
    """Arrange parts below each other, or next to each other within the width of a page or of the widest."""
    title = shorten(title, MOST_LETTERS)
    widest, first = max(page, *(part.width for part in parts)) if page else 0, TITLE if title else 0.0
    placed: list[tuple[Part, float, float]] = []
    rows: dict[float, int] = {}  # of parts next to each other, the most rows
    left, top, down = 0.0, first, first
    for part in parts:
        if left and left + part.width > widest:
            left, top = 0.0, down
        placed.append((part, left, top))
        rows[top] = max(part.rows, rows.get(top, 0))
        left, down = left + part.width, max(down, top + part.height)

    def draw(sheet: Sheet, left: float, top: float) -> None:
        sheet.title(top + 0.2, title, left)
        for part, across, below in placed:
            part.draw(sheet, left + across, top + below)

    width = max(len(title) * LETTER + 0.3, *(left + part.width for part, left, _ in placed))
    return Part(width, down, draw, sum(rows.values()))


def make_sheet(parts: Sequence[Part], page: float = 0) -> Sheet:
    whole = arrange_parts(parts, page)
    sheet = Sheet(whole.width, TOP + whole.height + BOTTOM)
    whole.draw(sheet, 0, TOP)
    return sheet


def file_of(parts: Sequence[Part], suffix: str, none: Diagnostic, most: int | None = None, page: float = 0) -> bytes:
    """Render parts as a `.png`, `.svg` or `.pdf` file, byte for byte the same each time.

    Raises `ModgraphError`: `none` if there are no parts, another if they have more than `most` rows.
    """
    if not parts:
        raise ModgraphError([none])
    rows = sum(part.rows for part in parts)
    if most is not None and rows > most:
        raise ModgraphError([TooTall(rows=rows, most=most)])
    buffer = io.BytesIO()
    with rc_context(SETTINGS):
        sheet = make_sheet(parts, page)
        sheet.figure.savefig(buffer, format=suffix.removeprefix("."), dpi=110, metadata=METADATA[suffix])
    content = buffer.getvalue()  # matplotlib quotes texts, but keeps letters that XML cannot contain
    return drop_invalid_xml(content.decode()).encode() if suffix == ".svg" else content


def choose_colours(modules: int) -> NDArray[Any]:
    """Return red, green, blue and opacity of every module, [modules, 4], as distinct as possible."""
    for name, most in (("tab10", 10), ("tab20", 20)):
        if modules <= most:
            return np.asarray(colormaps[name](np.arange(modules)))
    return np.asarray(colormaps["turbo"](np.linspace(0, 1, modules)))


def shorten(name: str, longest: int = 12) -> str:
    """Shorten a name to at most `longest` letters."""
    return name if len(name) <= longest else name[: longest - 1] + "…"
