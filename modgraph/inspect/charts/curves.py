"""Curves over a quantity: with levels, named boundaries and events, a legend, and the value that the pointer is at."""

from __future__ import annotations

from collections.abc import Sequence

from modgraph.inspect.charts.style import GRID, INK, LETTER, MUTED, NAME, Spec, choose_line_colours
from modgraph.inspect.page.content import Curves

WIDTH, WIDE, HEIGHT = 352, 620, 190  # pixels; three narrow ones stand next to each other in a page
TOTAL = "total"  # the parameter with the width that a page has
MOST_TICKS = 8  # whole numbers with a tick each
MOST_LINES = 12  # of a narrow chart
FEW = 60  # the most points of a curve with dots
MOST_POINTS = 4000  # of a chart that finds the nearest to the pointer
FROM_ZERO = 0.5  # the least share of the largest value above which an axis may begin later than at zero


def curves(chart: Curves, interactive: bool = False) -> Spec:
    """Describe curves. Their data are the fields of the content; for a page, the point nearest to the pointer has its
    value."""
    names = [curve.name for curve in chart.series]
    longest = max((len(curve.points) for curve in chart.series), default=0)
    width = WIDE if chart.boundaries or len(names) > MOST_LINES else WIDTH
    hovers = interactive and longest * len(names) <= MOST_POINTS
    lines = [_lines(longest), *([_nearest()] if hovers else [])]
    encoding = {
        "x": _describe_pointer(chart),
        "y": _up(chart),
        "color": _legend(names, width, interactive),
        "tooltip": {"field": "about"},
    }
    return {
        "width": width,
        **({"params": [{"name": TOTAL, "value": width}]} if interactive else {}),
        "height": HEIGHT,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "layer": [
            {"transform": _points(), "encoding": encoding, "layer": lines},
            *_draw_boundaries(chart.boundaries),
            *_levels(chart.levels),
            *_events(chart.events),
        ],
    }


def _points() -> list[Spec]:
    return [
        {"flatten": ["series"]},
        {"calculate": "datum.series.name", "as": "name"},
        {"calculate": "datum.series.points", "as": "points"},
        {"flatten": ["points"]},
        {"calculate": "datum.points[0]", "as": "x"},
        {"calculate": "datum.points[1]", "as": "y"},
        {"calculate": "datum.name + ' at ' + format(datum.x, ',~r') + ': ' + format(datum.y, '.4~g')", "as": "about"},
    ]


def _lines(longest: int) -> Spec:
    return {"mark": {"type": "line", "strokeWidth": 1.6, "point": {"size": 22} if longest <= FEW else False}}


def _nearest() -> Spec:
    """Points that are visible where the pointer is nearest."""
    select = {"type": "point", "on": "pointerover", "nearest": True, "clear": "pointerout"}
    opacity = {"condition": {"param": "nearest", "empty": False, "value": 1}, "value": 0}
    mark = {"type": "point", "filled": True, "size": 60}
    return {"params": [{"name": "nearest", "select": select}], "mark": mark, "encoding": {"opacity": opacity}}


def _values(chart: Curves, of: int) -> list[float]:
    points = (point for curve in chart.series for point in curve.points)
    return [point[of] for point in points if all(value - value == 0 for value in point)]


def _describe_pointer(chart: Curves) -> Spec:
    values = _values(chart, 0)
    low, high = min(values, default=0), max(values, default=0)
    is_short = bool(values) and high - low <= MOST_TICKS and all(float(value).is_integer() for value in values)
    ticks = {"values": [*range(int(low), int(high) + 1)], "format": "d"} if is_short else {}
    short = {"format": "~s"} if high >= 10_000 else {}
    axis = {"grid": False, "labelFlush": False, **ticks, **short}
    scale = {"zero": False, "nice": False}
    return {"field": "x", "type": "quantitative", "title": chart.x_label or None, "axis": axis, "scale": scale}


def _up(chart: Curves) -> Spec:
    values = [*_values(chart, 1), *(level for _, level in chart.levels)]
    low, high = min(values, default=0), max(values, default=0)
    scale = {"zero": high > 0 and 0 <= low <= FROM_ZERO * high, "nice": True}
    axis = {"domain": False, "ticks": False, "tickCount": 5, "labelPadding": 8}
    return {"field": "y", "type": "quantitative", "title": None, "axis": axis, "scale": scale}


def _legend(names: Sequence[str], width: int, is_narrowed: bool) -> Spec:
    """The colours of the names, and as many columns of names as fit; a page can narrow the chart."""
    one = round(36 + min(NAME, LETTER * max(map(len, names), default=0)))
    columns = {"expr": f"max(1, floor(({TOTAL} - 40) / {one}))"} if is_narrowed else max(1, (width - 40) // one)
    legend = {"orient": "bottom", "title": None, "columns": columns, "symbolType": "stroke", "symbolStrokeWidth": 2.5}
    scale = {"domain": list(names), "range": choose_line_colours(len(names))}
    return {"field": "name", "type": "nominal", "sort": None, "legend": legend if any(names) else None, "scale": scale}


def _levels(levels: Sequence[tuple[str, float]]) -> list[Spec]:
    """Dotted lines with their names above the right end."""
    if not levels:
        return []
    data = {"values": [{"name": name, "level": level} for name, level in levels]}
    y = {"field": "level", "type": "quantitative"}
    line = {"mark": {"type": "rule", "color": INK, "strokeDash": [2, 3]}, "encoding": {"y": y}}
    place = {"y": y, "x": {"value": "width"}, "text": {"field": "name"}}
    text = {"mark": {"type": "text", "align": "right", "dy": -6, "color": INK}, "encoding": place}
    return [{"data": data, "layer": [line, text]}]


def _draw_boundaries(boundaries: Sequence[tuple[str, float]]) -> list[Spec]:
    """Thin lines across, those with names thicker and with the names above."""
    if not boundaries:
        return []
    data = {"values": [{"name": name, "x": x, "width": 1.4 if name else 0.5} for name, x in boundaries]}
    x = {"field": "x", "type": "quantitative"}
    wide = {"field": "width", "type": "quantitative", "scale": None}
    line = {"mark": {"type": "rule", "color": GRID}, "encoding": {"x": x, "strokeWidth": wide}}
    place = {"x": x, "y": {"value": 0}, "text": {"field": "name"}}
    mark = {"type": "text", "align": "left", "angle": 330, "dx": 2, "dy": -6, "color": MUTED}
    return [{"data": data, "layer": [line, {"mark": mark, "encoding": place}]}]


def _events(events: Sequence[tuple[str, float]]) -> list[Spec]:
    """Triangles at the upper edge."""
    if not events:
        return []
    data = {"values": [{"name": name, "x": x} for name, x in events]}
    place = {"x": {"field": "x", "type": "quantitative"}, "y": {"value": 6}, "tooltip": {"field": "name"}}
    mark = {"type": "point", "shape": "triangle-down", "filled": True, "size": 70, "color": INK, "opacity": 1}
    return [{"data": data, "mark": mark, "encoding": place}]
