"""Renders gates and choices over an image.

Where a router chooses some modules for each token, a map has the colour of each place's module (Li et al., ICLR 2023,
figure 3c). Gates of other routers are maps of their own, a row for each module and a column for each round (Hu et al.,
ICLR 2024, figures 4 and 8).

Axis letters: R rounds, B examples, N tokens, M modules, K choices, H and W rows and columns of the grid of tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from numpy.typing import NDArray

from modgraph.trace.errors import NotOfAnImage
from modgraph.trace.sheet import CELL, WORDS, Part, Sheet, choose_colours, file_of, shorten
from modgraph.trace.statistics import pick_rounds
from modgraph.trace.steps import Places, find_places_of_routes
from modgraph.trace.trace import RouteTrace, Trace

MOST_ROWS = 128
LEAST_RANGE = 0.1  # least range of gates on the colour scale, so that rounding is no pattern
LIFT = 0.35  # level of black under a map of gates, which keeps the colours of the scale
STRENGTH = 0.6  # opacity of a module's colour over the image

# in inches
STEP = CELL + 0.08
LEFT, NAMES, RIGHT, ROUTE, EXAMPLE_GAP, LINE = 1.8, 0.95, 0.95, 0.62, 0.22, 0.19
CHOICES = LEFT + CELL + 0.12  # left edge of maps of choices, which have no names of modules


def places_picture(trace: Trace, suffix: str) -> bytes:
    """Render a `.png`, `.svg` or `.pdf` file. Raises `ModgraphError`."""
    parts = [_choices(trace, maps) if maps.choice is not None else _gates(trace, maps) for maps in make_maps(trace)]
    none = NotOfAnImage(routes=", ".join(route.name for route in trace.routes))
    return file_of(parts, suffix, none, MOST_ROWS)


@dataclass(frozen=True)
class Maps:
    """The gates of one route as an image of its tokens: gates [R, B, H, W, M].

    Where a router chooses some of the modules, `choice` has their numbers, [B, H, W, K], the largest gate first; −1
    stands for none.
    """

    route: RouteTrace
    image: str
    gates: NDArray[Any]
    choice: NDArray[np.int64] | None


def make_maps(trace: Trace) -> list[Maps]:
    """Return maps of the routes whose tokens are the places of an image."""
    routes, places = {route.name: route for route in trace.routes}, find_places_of_routes(trace)
    return [
        Maps(routes[name], each.image, _as_image(routes[name].gates, each), _choice_map(routes[name], each))
        for name, each in places.items()
        if routes[name].gates.ndim == 4 and routes[name].gates.shape[2] == each.tokens
    ]


def _as_image(record: NDArray[Any], places: Places) -> NDArray[Any]:
    """Reshape a record [R, B, N, M] to [R, B, H, W, M], without tokens that have no place."""
    grid = (*record.shape[:2], places.rows, places.columns, record.shape[-1])
    return record[:, :, places.in_front :].reshape(grid)


def _choice_map(route: RouteTrace, places: Places) -> NDArray[np.int64] | None:
    """Return the choice after the last round, None if the router chooses all modules."""
    mask = _as_image(route.choice, places)[-1] > 0
    most = int(mask.sum(-1).max())
    if not route.has_choice or most == route.modules:
        return None
    ranked = np.where(mask, _as_image(route.gates, places)[-1], -np.inf)
    order = np.argsort(-ranked, axis=-1, kind="stable")[..., :most]
    return np.where(np.take_along_axis(mask, order, -1), order, -1)


def _gates(trace: Trace, maps: Maps) -> Part:
    """Lay out each module's gates over the image, round by round."""
    route, left = maps.route, LEFT + CELL + NAMES
    low, high = float(maps.gates.min()), float(maps.gates.max())
    spare = max(0.0, LEAST_RANGE - (high - low)) / 2
    scale, rounds = Normalize(low - spare, high + spare), pick_rounds(len(route.gates))
    style: Any = {"cmap": "viridis", "alpha": 0.65, "interpolation": "bilinear", "norm": scale}
    columns = [f"round {at + 1}" for at in rounds] if len(rounds) > 1 else ["gates"]

    def draw(sheet: Sheet, _: float, top: float) -> None:
        for example, down, pixels in _draw_images(sheet, trace, maps, top, left, columns, route.modules):
            for row in range(route.modules):
                name = f"{shorten(route.short_pool)}.{row}"
                sheet.write(left - 0.08, down + row * STEP + CELL / 2, name, ha="right", va="center")
                for column, at in enumerate(rounds):
                    place = left + column * STEP, down + row * STEP
                    sheet.image(*place, LIFT + (1 - LIFT) * pixels)
                    sheet.lay_over(*place, maps.gates[at, example, :, :, row], pixels, **style)
        bar = sheet.axes(left + len(columns) * STEP + 0.08, top + ROUTE, 0.12, route.modules * STEP - (STEP - CELL))
        sheet.figure.colorbar(ScalarMappable(scale, style["cmap"]), cax=bar)
        bar.tick_params(labelsize=8)
        bar.set_title("gate", **WORDS)

    height = ROUTE + len(trace) * (route.modules * STEP + EXAMPLE_GAP)
    return Part(left + len(columns) * STEP + RIGHT, height, draw, len(trace) * route.modules)


def _choices(trace: Trace, maps: Maps) -> Part:
    """Lay out the chosen module of every place, a colour for each; with several, the largest gate first."""
    route, choice = maps.route, maps.choice
    assert choice is not None
    count, colours = choice.shape[-1], choose_colours(route.modules)
    columns = [f"choice {at + 1}" for at in range(count)] if count > 1 else ["chosen"]
    painted = np.where(choice[..., None] >= 0, colours[choice], 0) * [1, 1, 1, STRENGTH]

    def draw(sheet: Sheet, _: float, top: float) -> None:
        for example, down, pixels in _draw_images(sheet, trace, maps, top, CHOICES, columns, 1):
            for column in range(count):
                left = CHOICES + column * STEP
                sheet.image(left, down, pixels)
                sheet.lay_over(left, down, painted[example, :, :, column], pixels, interpolation="nearest")
        left, down = CHOICES + count * STEP + 0.1, top + ROUTE
        for module, colour in enumerate(colours):  # as many as there is room for next to the images
            if 0.12 + module * LINE <= len(trace) * (CELL + 0.3):
                sheet.write(left, down + 0.12 + module * LINE, "■", color=colour, va="center")
                name = f"{shorten(route.short_pool, 8)}.{module}"
                sheet.write(left + 0.16, down + 0.12 + module * LINE, name, va="center")

    height = ROUTE + len(trace) * (STEP + EXAMPLE_GAP)
    return Part(CHOICES + count * STEP + RIGHT + 0.3, height, draw, len(trace))


def _draw_images(
    sheet: Sheet, trace: Trace, maps: Maps, top: float, left: float, columns: Sequence[str], rows: int
) -> Iterator[tuple[int, float, NDArray[Any]]]:
    """Draw the titles, then each example with its image; yields its number, its top and the image for maps over it."""
    route = maps.route
    sheet.title(top + 0.2, f"{route.name}: {route.pool} by {route.decision.router.router}, {trace.split}")
    for place, words in ((LEFT, "image"), *((left + at * STEP, words) for at, words in enumerate(columns))):
        sheet.write(place + CELL / 2, top + ROUTE - 0.06, words, ha="center")
    for example in range(len(trace)):
        down = top + ROUTE + example * (rows * STEP + EXAMPLE_GAP)
        pixels = pixels_of(trace.arrays.values[maps.image][example])
        lines = [f"example {example}"]
        lines += [f"{name} {shorten(words[example])}" for name, words in trace.arrays.groups.items()]
        if trace.predicted:
            lines.append(f"true {shorten(next(iter(trace.labels.values()))[example])}")
            lines.append(f"predicted {shorten(trace.predicted[example])}")
        sheet.write(LEFT - 0.12, down + CELL / 2, "\n".join(lines), ha="right", va="center", linespacing=1.4)
        sheet.image(LEFT, down, pixels)
        yield example, down, pixels


def pixels_of(image: NDArray[Any]) -> NDArray[Any]:
    """Scale an image [C, H, W] to 0 to 1: in colour [H, W, 3] if it has three channels, else their mean [H, W]."""
    pixels = image.transpose(1, 2, 0) if len(image) == 3 else image.mean(0)
    low, high = float(pixels.min()), float(pixels.max())
    return (pixels - low) / (high - low) if high > low else np.zeros_like(pixels)
