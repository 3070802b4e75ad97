"""Paths from route to route: a column for each route, a disc for each module, lines as wide as the path is frequent."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from modgraph.inspect.charts.style import INK, LETTER, Spec
from modgraph.inspect.page.content import Paths

BETWEEN, FEW = 150, 16  # pixels from route to route; modules that have more room
WIDEST, LARGEST = 20.0, 700.0  # pixels of a line that all decisions take; area of a disc in square pixels


def paths(chart: Paths) -> Spec:
    """Describe a diagram of paths, with its data."""
    modules = max(map(len, chart.shares))
    between = max(BETWEEN if modules <= FEW else 2 * BETWEEN, 24 + LETTER * max(map(len, chart.routes)))
    down = 40 if modules <= FEW else 18
    columns = [between * (at + 0.5) for at in range(len(chart.routes))]
    size = between * len(chart.routes), down * modules
    place = {"x": _place("x", size[0]), "y": _place("y", size[1]), "tooltip": {"field": "about"}}
    line = {"type": "rule", "color": "var(--accent)", "opacity": 0.5}
    scale = {"domain": [0, 1], "range": [0, WIDEST]}
    wide = {"field": "share", "type": "quantitative", "scale": scale, "legend": None}
    area = {"size": {"field": "area", "type": "quantitative", "scale": None}}
    discs = _list_discs(chart, columns, down)
    first, rest = ([disc for disc in discs if (disc["x"] == columns[0]) == is_first] for is_first in (True, False))
    heads = [{"x": x, "y": -8, "name": name} for x, name in zip(columns, chart.routes, strict=True)]
    ends = {"x2": {"field": "x2"}, "y2": {"field": "y2"}, "strokeWidth": wide}
    return {
        "data": {"values": []},
        "width": size[0],
        "height": size[1],
        "encoding": place,
        "layer": [
            {"data": {"values": _list_links(chart, columns, down)}, "mark": line, "encoding": ends},
            {"data": {"values": discs}, "mark": {"type": "circle", "color": INK, "opacity": 1}, "encoding": area},
            *(_write(part, **style) for part, style in ((first, _BEFORE), (rest, _BEHIND), (heads, {})) if part),
        ],
    }


_BEFORE: dict[str, Any] = {"align": "right", "dx": -18}
_BEHIND: dict[str, Any] = {"align": "left", "dx": 18}


def _list_links(chart: Paths, columns: Sequence[float], down: float) -> list[Spec]:
    return [
        {
            "x": x,
            "x2": x2,
            "y": down * (one + 0.5),
            "y2": down * (other + 0.5),
            "share": share,
            "about": f"{one} → {other}: {share:.1%}",
        }
        for (x, x2), flows in zip(pairwise(columns), chart.flows, strict=True)
        for one, shares in enumerate(flows)
        for other, share in enumerate(shares)
        if share > 0
    ]


def _list_discs(chart: Paths, columns: Sequence[float], down: float) -> list[Spec]:
    return [
        {
            "x": x,
            "y": down * (at + 0.5),
            "area": LARGEST * max(share, 0.01),
            "name": str(at),
            "about": f"{route} {at}: {share:.1%}",
        }
        for x, route, shares in zip(columns, chart.routes, chart.shares, strict=True)
        for at, share in enumerate(shares)
    ]


def _write(texts: Sequence[Spec], **style: Any) -> Spec:
    mark = {"type": "text", "color": INK, "fontSize": 11, **style}
    return {"data": {"values": list(texts)}, "mark": mark, "encoding": {"text": {"field": "name"}}}


def _place(field: str, size: float) -> Spec:
    scale = {"domain": [0, size], "nice": False, "zero": False, **({"reverse": True} if field == "y" else {})}
    return {"field": field, "type": "quantitative", "axis": None, "scale": scale}
