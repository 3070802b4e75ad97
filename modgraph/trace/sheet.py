"""The paper that pictures are drawn on: a figure on which boxes are placed in inches, and its file."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from modgraph.inspect.quote import drop_invalid_xml
from modgraph.version import VERSION

CELL, GAP = 1.15, 0.08  # inches
LONGEST_NAME = 12
LETTER = 0.079  # inches that a bold letter takes
WORDS: dict[str, Any] = {"parse_math": False, "fontsize": 9}
SETTINGS: Any = {"svg.hashsalt": "modgraph", "font.family": "DejaVu Sans", "text.parse_math": False}
MAKER = f"modgraph {VERSION}"  # by which a picture is known to be ours
METADATA: dict[str, dict[str, Any]] = {  # without a date
    ".png": {"Software": MAKER},
    ".svg": {"Creator": MAKER, "Date": None},
    ".pdf": {"Creator": MAKER, "CreationDate": None},
}


@dataclass(frozen=True)
class Sheet:
    """A figure on which boxes are placed in inches, from the left and from the top."""

    figure: Figure
    width: float
    height: float
    paper: Any  # axes in inches over the whole figure, for images: axes of their own take longer than all else

    @classmethod
    def blank(cls, width: float, height: float) -> Sheet:
        figure = Figure(figsize=(width, height), facecolor="white")
        FigureCanvasAgg(figure)
        paper = figure.add_axes((0, 0, 1, 1))
        paper.set(xlim=(0, width), ylim=(height, 0))
        paper.set_axis_off()
        return cls(figure, width, height, paper)

    def axes(self, left: float, top: float, width: float = CELL, height: float = CELL) -> Any:
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
        self.paper.imshow(map_HW, extent=(left, left + width, top + height, top), aspect="auto", **style)

    def write(self, left: float, top: float, text: str, **style: Any) -> None:
        self.figure.text(left / self.width, 1 - top / self.height, text, **{**WORDS, **style})

    def title(self, top: float, text: str) -> None:
        """Bold, and cut where the sheet ends."""
        self.write(0.15, top, shortened(text, int(self.width / LETTER)), weight="bold")


def file_of(draw: Callable[[], Sheet], suffix: str) -> bytes:
    """The content of a `.png`, `.svg` or `.pdf` file, the same each time."""
    buffer = io.BytesIO()
    with rc_context(SETTINGS):
        draw().figure.savefig(buffer, format=suffix.removeprefix("."), dpi=110, metadata=METADATA[suffix])
    content = buffer.getvalue()  # where matplotlib quotes texts, but for what XML has no way to say
    return drop_invalid_xml(content.decode()).encode() if suffix == ".svg" else content


def pixels_of(image: NDArray[Any]) -> NDArray[Any]:
    """An image [C, H, W] from 0 to 1: in colour [H, W, 3] if it has three channels, or else their mean [H, W]."""
    pixels = image.transpose(1, 2, 0) if len(image) == 3 else image.mean(0)
    low, high = float(pixels.min()), float(pixels.max())
    return (pixels - low) / (high - low) if high > low else np.zeros_like(pixels)


def shortened(name: str, longest: int = LONGEST_NAME) -> str:
    return name if len(name) <= longest else name[: longest - 1] + "…"
