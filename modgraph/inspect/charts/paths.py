"""Paths from route to route: a column for each route, a disc for each module, lines as wide as the path is frequent."""

from __future__ import annotations

from itertools import pairwise

from modgraph.inspect.charts.style import INK, LETTER, Spec
from modgraph.inspect.page.content import Paths

BETWEEN, DOWN, WIDEST, LARGEST = 150, 40, 20.0, 700.0  # pixels; of a line that all decisions take; area of a disc


def paths(chart: Paths) -> Spec:
    """Describe a diagram of paths, with its data."""
    between = max(BETWEEN, 24 + LETTER * max(map(len, chart.routes)))
    width, height = between * len(chart.routes), DOWN * max(map(len, chart.shares))
    columns = [between * (at + 0.5) for at in range(len(chart.routes))]
    links = [
        {"x": x, "x2": x2, "y": _row(one), "y2": _row(other), "share": share, "about": f"{one} → {other}: {share:.1%}"}
        for (x, x2), flows in zip(pairwise(columns), chart.flows, strict=True)
        for one, shares in enumerate(flows)
        for other, share in enumerate(shares)
        if share > 0
    ]
    discs = [
        {
            "x": x,
            "y": _row(at),
            "area": LARGEST * max(share, 0.01),
            "name": str(at),
            "about": f"{route} {at}: {share:.1%}",
        }
        for x, route, shares in zip(columns, chart.routes, chart.shares, strict=True)
        for at, share in enumerate(shares)
    ]
    heads = [{"x": x, "y": -8, "name": name} for x, name in zip(columns, chart.routes, strict=True)]
    place = {"x": _place("x", width), "y": _place("y", height), "tooltip": {"field": "about"}}
    line = {"type": "rule", "color": "var(--accent)", "opacity": 0.5}
    wide = {"field": "share", "type": "quantitative", "scale": {"domain": [0, 1], "range": [0, WIDEST]}, "legend": None}
    area = {"size": {"field": "area", "type": "quantitative", "scale": None}}
    name = {"type": "text", "color": INK, "fontSize": 11}
    return {
        "data": {"values": []},
        "width": width,
        "height": height,
        "encoding": place,
        "layer": [
            {
                "data": {"values": links},
                "mark": line,
                "encoding": {"x2": {"field": "x2"}, "y2": {"field": "y2"}, "strokeWidth": wide},
            },
            {"data": {"values": discs}, "mark": {"type": "circle", "color": INK, "opacity": 1}, "encoding": area},
            {
                "data": {"values": discs},
                "mark": {**name, "align": "left", "dx": 18},
                "encoding": {"text": {"field": "name"}},
            },
            {"data": {"values": heads}, "mark": name, "encoding": {"text": {"field": "name"}}},
        ],
    }


def _row(module: int) -> float:
    return DOWN * (module + 0.5)


def _place(field: str, size: float) -> Spec:
    scale = {"domain": [0, size], "nice": False, "zero": False, **({"reverse": True} if field == "y" else {})}
    return {"field": field, "type": "quantitative", "axis": None, "scale": scale}
