"""Renders gates and choices over an image.

Where a router chooses some modules for each token, a map has the colour of each place's module (Li et al., ICLR 2023,
figure 3c). Gates of other routers are maps of their own, a row for each module and a column for each round (Hu et al.,
ICLR 2024, figures 4 and 8).

Axis letters: R rounds, B examples, N tokens, M modules, K choices, H and W rows and columns of the grid of tokens.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.diagnostics import ModgraphError
from modgraph.extras import require
from modgraph.inspect.charts import Spec
from modgraph.inspect.charts.picture import render, stack, wrap
from modgraph.inspect.charts.style import INK, MUTED, choose_colours
from modgraph.trace.errors import NotOfAnImage, TooTall
from modgraph.trace.statistics import pick_rounds
from modgraph.trace.steps import Places, find_places_of_routes
from modgraph.trace.trace import RouteTrace, Trace

MOST_ROWS = 128
LEAST_RANGE = 0.1  # least range of gates on the colour scale, so that rounding is no pattern
LIFT = 0.35  # level of black under a map of gates, which keeps the colours of the scale
STRENGTH = 0.6  # opacity of a module's colour over the image
GATE = 0.65  # opacity of a map of gates
VIRIDIS = "#440154 #482475 #414487 #355f8d #2a788e #21918c #22a884 #44bf70 #7ad151 #bddf26 #fde725".split()

# in pixels
IMAGE = 120  # the longer side of an image
STEP = IMAGE + 8
GAP = 22  # between examples
SIDE = 180  # of the pixels in a file, for the longer side


def places_picture(trace: Trace, suffix: str) -> bytes:
    """Render a `.png`, `.svg` or `.pdf` file. Raises `ModgraphError`."""
    return render(stack(describe_places(trace)), suffix)


def describe_places(trace: Trace) -> list[Spec]:
    """Describe a chart for each route whose tokens are the places of an image. Raises `ModgraphError`."""
    require("pictures", "a picture of a trace", "write numbers: -o trace.npz")
    found = make_maps(trace)
    if not found:
        raise ModgraphError([NotOfAnImage(routes=", ".join(route.name for route in trace.routes))])
    rows = sum(len(trace) * (1 if maps.choice is not None else maps.route.modules) for maps in found)
    if rows > MOST_ROWS:
        raise ModgraphError([TooTall(rows=rows, most=MOST_ROWS)])
    return [_choices(trace, maps) if maps.choice is not None else _gates(trace, maps) for maps in found]


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


@dataclass(frozen=True)
class Tile:
    """An image of the picture in pixels [H, W, 3], at a column and a row of its example."""

    pixels: NDArray[Any]
    column: int
    row: int = 0


def _gates(trace: Trace, maps: Maps) -> Spec:
    """Describe each module's gates over the image, round by round."""
    low, high = float(maps.gates.min()), float(maps.gates.max())
    spare = max(0.0, LEAST_RANGE - (high - low)) / 2
    low, high, rounds, modules = low - spare, high + spare, pick_rounds(len(maps.route.gates)), maps.route.modules
    columns = [f"round {at + 1}" for at in rounds] if len(rounds) > 1 else ["gates"]

    def tiles(example: int, image: NDArray[Any]) -> Iterator[Tile]:
        for row in range(modules):
            for column, at in enumerate(rounds):
                shares = _enlarge(maps.gates[at, example, :, :, row], image.shape, smooth=True)
                colours = _colour((shares - low) / (high - low))
                yield Tile((1 - GATE) * (LIFT + (1 - LIFT) * image) + GATE * colours, column + 1, row)

    scale = {"domain": [low, high], "range": VIRIDIS}
    bar = {"title": "gate", "gradientLength": min(300, modules * STEP), "format": ".2f"}
    names = [f"{maps.route.short_pool}.{row}" for row in range(modules)]
    return _describe(trace, maps, columns, names, tiles, {"type": "quantitative", "scale": scale, "legend": bar})


def _choices(trace: Trace, maps: Maps) -> Spec:
    """Describe the chosen module of every place, a colour for each; with several, the largest gate first."""
    choice, modules = maps.choice, maps.route.modules
    assert choice is not None
    count, colours = choice.shape[-1], choose_colours(modules)
    columns = [f"choice {at + 1}" for at in range(count)] if count > 1 else ["chosen"]
    table = np.array([_read_colour(colour) for colour in colours])

    def tiles(example: int, image: NDArray[Any]) -> Iterator[Tile]:
        for column in range(count):
            picked = _enlarge(choice[example, :, :, column], image.shape)
            painted = (1 - STRENGTH) * image + STRENGTH * table[picked]
            yield Tile(np.where(picked[..., None] >= 0, painted, image), column + 1)

    names = [f"{maps.route.short_pool}.{module}" for module in range(modules)]
    legend = {"title": "module", "symbolOpacity": 1, "symbolSize": 120, "columns": -(-modules // 24)}
    scale = {"domain": names, "range": colours}
    return _describe(trace, maps, columns, [], tiles, {"type": "nominal", "scale": scale, "legend": legend})


def _describe(trace: Trace, maps: Maps, columns: Sequence[str], names: Sequence[str], tiles: Any, colour: Spec) -> Spec:
    """Describe the images of all examples with their maps, named rows, and a legend of colours."""
    images, texts, rows = list[Spec](), list[Spec](), max(1, len(names))
    for example in range(len(trace)):
        top = example * (rows * STEP + GAP)
        image = _enlarge(pixels_of(trace.arrays.values[maps.image][example]), None)
        name_width = 16 + 7 * max(map(len, names), default=0)
        for tile in (Tile(image, 0), *tiles(example, image)):
            left = tile.column * STEP + (name_width if tile.column and names else 0)
            images.append({"x": left, "y": top + tile.row * STEP, "url": _encode(tile.pixels)})
        lines = [{"name": line, "x": -10, "y": top + 20 + 16 * at} for at, line in enumerate(_label(trace, example))]
        texts += [{**line, "align": "right", "color": MUTED if not at else INK} for at, line in enumerate(lines)]
        x = STEP + name_width - 8
        texts += [
            {"name": name, "x": x, "y": top + at * STEP + IMAGE / 2, "align": "right"} for at, name in enumerate(names)
        ]
    heads = [(0, "image"), *((STEP * (at + 1) + (name_width if names else 0), name) for at, name in enumerate(columns))]
    texts += [{"name": name, "x": left + IMAGE / 2, "y": -8, "align": "center"} for left, name in heads]
    width, height = heads[-1][0] + IMAGE, len(trace) * (rows * STEP + GAP) - GAP
    title = f"{maps.route.name}: {maps.route.pool} by {maps.route.decision.router.router}, {trace.split}"
    place = {"x": _place("x", width), "y": _place("y", height)}
    picture = {"type": "image", "width": IMAGE, "height": IMAGE, "align": "left", "baseline": "top"}
    ends = [{"colour": end} for end in colour["scale"]["domain"]]
    layers: list[Spec] = [
        {"data": {"values": images}, "mark": picture, "encoding": {"url": {"field": "url", "type": "nominal"}}},
        {
            "data": {"values": ends},
            "mark": {"type": "square", "opacity": 0},
            "encoding": {"x": {"value": 0}, "y": {"value": 0}, "color": {"field": "colour", "sort": None, **colour}},
        },
    ]
    for align in ("left", "right", "center"):
        found = [text for text in texts if text["align"] == align]
        mark = {"type": "text", "align": align, "baseline": "middle", "fontSize": 11, "color": INK}
        layers += [{"data": {"values": found}, "mark": mark, "encoding": {"text": {"field": "name"}}}] if found else []
    head = wrap(title, max(300, width + 100), 13)
    return {"title": {**head, "offset": 26}, "width": width, "height": height, "encoding": place, "layer": layers}


def _label(trace: Trace, example: int) -> list[str]:
    """What is known of an example, a line for each fact."""
    lines = [f"example {example}", *(f"{name} {words[example]}" for name, words in trace.arrays.groups.items())]
    if trace.predicted:
        lines.append(f"true {next(iter(trace.labels.values()))[example]}")
        lines.append(f"predicted {trace.predicted[example]}")
    return lines


def _place(field: str, size: float) -> Spec:
    scale = {"domain": [0, size], "nice": False, "zero": False, **({"reverse": True} if field == "y" else {})}
    return {"field": field, "type": "quantitative", "axis": None, "scale": scale}


# ------------------------------------------------------------ pixels


def _enlarge(values: NDArray[Any], shape: tuple[int, ...] | None, smooth: bool = False) -> NDArray[Any]:
    """Enlarge an image or a map, to a shape or to a side of `SIDE` pixels. Maps of numbers of modules stay whole."""
    from PIL import Image

    side = SIDE / max(values.shape[:2])
    height, width = shape[:2] if shape is not None else (max(1, round(side * size)) for size in values.shape[:2])
    if values.ndim == 3:
        return np.stack([_enlarge(part, (height, width)) for part in np.moveaxis(values, -1, 0)], -1)
    method = Image.Resampling.BILINEAR if smooth else Image.Resampling.NEAREST
    picture = Image.fromarray(values.astype(np.float32)).resize((width, height), method)
    return np.asarray(picture).astype(values.dtype)


def _colour(shares: NDArray[Any]) -> NDArray[Any]:
    """The colours [H, W, 3] of numbers from 0 to 1 on the scale."""
    stops = np.array([_read_colour(colour) for colour in VIRIDIS])
    return np.stack([np.interp(shares, np.linspace(0, 1, len(stops)), part) for part in stops.T], -1)


def _read_colour(colour: str) -> list[float]:
    return [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]


def _encode(pixels: NDArray[Any]) -> str:
    """A PNG as an address."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray((255 * pixels.clip(0, 1)).round().astype(np.uint8)).save(buffer, "png")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def pixels_of(image: NDArray[Any]) -> NDArray[Any]:
    """Scale an image [C, H, W] to colours from 0 to 1, [H, W, 3]: its own if it has three channels, else its mean in
    grey."""
    pixels = image if len(image) == 3 else np.repeat(image.mean(0, keepdims=True), 3, 0)
    low, high = float(pixels.min()), float(pixels.max())
    scaled: NDArray[Any] = (pixels - low) / (high - low) if high > low else np.zeros(pixels.shape)
    return scaled.transpose(1, 2, 0)
