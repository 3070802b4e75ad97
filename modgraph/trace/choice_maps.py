"""The modules that a route chose for each place of an image, a colour for each module."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.trace.colours import colours_of
from modgraph.trace.sections import Section
from modgraph.trace.sheet import CELL, Sheet, shortened

STRENGTH = 0.6  # opacity of a colour over the image
LINE = 0.19  # inches


class ChoiceMaps(Section):
    """The chosen module of every place; of several, that of the largest gate first."""

    names = 0.12

    @property
    def rows(self) -> int:
        return 1

    @property
    def columns(self) -> list[str]:
        assert self.maps.chosen is not None
        count = self.maps.chosen.shape[-1]
        return [f"choice {at + 1}" for at in range(count)] if count > 1 else ["chosen"]

    @property
    def width(self) -> float:
        return super().width + 0.3

    def draw_maps(self, sheet: Sheet, example: int, top: float, pixels: NDArray[Any]) -> None:
        assert self.maps.chosen is not None
        colours = colours_of(self.route.modules)
        for column in range(len(self.columns)):
            left = self.left_of(column)
            sheet.image(left, top, pixels)
            places_HW = self.maps.chosen[example, :, :, column]
            painted = np.where(places_HW[..., None] >= 0, colours[places_HW], 0)
            painted[..., 3] *= STRENGTH
            sheet.lay_over(left, top, painted, pixels, interpolation="nearest")

    def draw_legend(self, sheet: Sheet, top: float) -> None:
        """Every module's colour; where there are too many for a row of images, they go on beside."""
        name = shortened(self.route.short_pool, 8)
        left = self.left_of(len(self.columns)) + 0.1
        for module, colour in enumerate(colours_of(self.route.modules)):
            down = top + 0.12 + module * LINE
            if down > top + len(self.trace) * (CELL + 0.3):
                return
            sheet.write(left, down, "■", color=colour, va="center")
            sheet.write(left + 0.16, down, f"{name}.{module}", va="center")
