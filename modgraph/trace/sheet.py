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
MOST_LETTERS = 80  # of a title
TOP, BOTTOM, TITLE = 0.1, 0.15, 0.35  # inches above and below all parts, and of a title
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

    def write(self, left: float, top: float, text: str, **style: Any) -> None:
        self.figure.text(left / self.width, 1 - top / self.height, text, **{**WORDS, **style})

    def title(self, top: float, text: str, left: float = 0) -> None:
        """Bold, and cut where the sheet ends."""
        self.write(left + 0.15, top, shortened(text, int((self.width - left) / LETTER)), weight="bold")


@dataclass(frozen=True)
class Part:
    """A part of a picture: inches that it takes, what draws it from its left and top, and rows that are looked at."""

    width: float
    height: float
    draw: Callable[[Sheet, float, float], None]
    rows: int = 0


def together(parts: Sequence[Part], page: float = 0, title: str = "") -> Part:
    """Parts as one, under a title: below each other, or beside each other as far as a page, or the widest, leaves
    room."""
    title = shortened(title, MOST_LETTERS)
    widest, first = max(page, *(part.width for part in parts)) if page else 0, TITLE if title else 0.0
    placed: list[tuple[Part, float, float]] = []
    rows: dict[float, int] = {}  # of parts beside each other those of the longest
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


def sheet_of(parts: Sequence[Part], page: float = 0) -> Sheet:
    whole = together(parts, page)
    sheet = Sheet(whole.width, TOP + whole.height + BOTTOM)
    whole.draw(sheet, 0, TOP)
    return sheet


def file_of(parts: Sequence[Part], suffix: str, none: Diagnostic, most: int | None = None, page: float = 0) -> bytes:
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
        sheet = sheet_of(parts, page)
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
