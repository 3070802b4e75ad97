"""The gates of a route as maps: a row is a module, a column a round."""

from __future__ import annotations

from typing import Any

from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from numpy.typing import NDArray

from modgraph.trace.rounds import shown_rounds
from modgraph.trace.sections import Section
from modgraph.trace.sheet import CELL, GAP, WORDS, Sheet, shortened

COLOURS = "viridis"
STYLE: Any = {"cmap": COLOURS, "alpha": 0.65, "interpolation": "bilinear"}  # of a map over the image
LIFT = 0.35  # of black under a map, or else colours would not be those of the scale


class GateMaps(Section):
    """Each module's gates over the image, round by round."""

    @property
    def rows(self) -> int:
        return self.route.modules

    @property
    def columns(self) -> list[str]:
        rounds = shown_rounds(self.route.rounds)
        return [f"round {at + 1}" for at in rounds] if len(rounds) > 1 else ["gates"]

    def draw_maps(self, sheet: Sheet, example: int, top: float, pixels: NDArray[Any]) -> None:
        scale = Normalize(*self.maps.scale)
        for module in range(self.route.modules):
            down = top + module * (CELL + GAP)
            name = f"{shortened(self.route.short_pool)}.{module}"
            sheet.write(self.left_of(0) - 0.08, down + CELL / 2, name, ha="right", va="center")
            for column, at in enumerate(shown_rounds(self.route.rounds)):
                left, map_HW = self.left_of(column), self.maps.gates[at, example, :, :, module]
                sheet.image(left, down, LIFT + (1 - LIFT) * pixels)
                sheet.lay_over(left, down, map_HW, pixels, norm=scale, **STYLE)

    def draw_legend(self, sheet: Sheet, top: float) -> None:
        height = self.route.modules * (CELL + GAP) - GAP
        bar = sheet.axes(self.left_of(len(self.columns)) + 0.08, top, 0.12, height)
        sheet.figure.colorbar(ScalarMappable(Normalize(*self.maps.scale), COLOURS), cax=bar)
        bar.tick_params(labelsize=8)
        bar.set_title("gate", **WORDS)
