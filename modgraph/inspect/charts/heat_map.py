"""Heat maps: a cell for each row and column, its value as the strength of a colour and as a number."""

from __future__ import annotations

from modgraph.inspect.charts.style import INK, LETTER, NAME, PAPER, Spec
from modgraph.inspect.page.content import Heatmap

CELL, SMALL, ROW = 26, 14, 22  # pixels of a cell's side, of one without its number, and of a row of numbers
LINE = 13  # pixels of a further line of a column's name
MOST_NUMBERS = 1500  # cells with numbers
DARK = 0.6  # strength of the colour above which numbers are light


def heat_map(chart: Heatmap) -> Spec:
    """Describe a heat map. Its data are the fields of the content."""
    numbered, cell = has_numbers(chart), find_cell(chart)
    height = ROW if numbered else SMALL
    most = find_most(chart)
    upright = max((len(line) for name in chart.columns for line in name.split("\n")), default=0) * LETTER > cell
    below = max((name.count("\n") for name in chart.columns), default=0)
    above = {"orient": "top", "labelAngle": -90 if upright else 0, "domain": False, "ticks": False}
    lists = ["values", *(["words"] if chart.words else [])]
    layers: list[Spec] = [
        {"mark": {"type": "rect", "fill": "var(--accent)", "stroke": PAPER}, "encoding": _shade(most)}
    ]
    if numbered:
        test = {"test": f"datum.values > {DARK * most}", "value": PAPER}
        number = {"text": {"field": "number"}, "fill": {"condition": test, "value": INK}}
        layers.append({"mark": {"type": "text", "fontSize": 10.5}, "encoding": number})
    lines = "split(datum.label, '\\n')"
    return {
        "transform": [
            {"flatten": ["rows", *lists]},
            {"flatten": ["columns", *lists]},
            {"calculate": write_number(chart), "as": "number"},
            {"calculate": "datum.rows + ', ' + datum.columns + ': ' + format(datum.values, '.4~g')", "as": "about"},
        ],
        "width": {"step": cell},
        "height": {"step": height},
        "encoding": {
            "x": _axis("columns", chart.x_label, {**above, "labelExpr": lines, "labelPadding": 5 + LINE * below}),
            "y": _axis("rows", chart.y_label, {"domain": False, "ticks": False, "labelPadding": 6}),
        },
        "layer": layers,
    }


def _axis(field: str, title: str, axis: Spec) -> Spec:
    return {"field": field, "type": "nominal", "sort": None, "title": title or None, "axis": axis}


def _shade(most: float) -> Spec:
    scale = {"domain": [0, most], "range": [0.04, 1], "clamp": True}
    opacity = {"field": "values", "type": "quantitative", "scale": scale, "legend": None}
    return {"fillOpacity": opacity, "tooltip": {"field": "about"}}


def find_most(chart: Heatmap) -> float:
    """The value with the strongest colour."""
    return max([chart.most, *(value for row in chart.values for value in row)]) or 1e-12


def write_number(chart: Heatmap) -> str:
    """The expression of a cell's text: its words, a whole number, a share in percent, or else three digits."""
    values = [value for row in chart.values for value in row]
    if chart.words:
        return "datum.words"
    if all(float(value).is_integer() for value in values) and find_most(chart) > 1:
        return "format(datum.values, ',d')"
    return "format(100 * datum.values, '.0f')" if find_most(chart) <= 1 else "format(datum.values, '.3~g')"


def has_numbers(chart: Heatmap) -> bool:
    return chart.numbers and len(chart.rows) * len(chart.columns) <= MOST_NUMBERS


def find_cell(chart: Heatmap) -> float:
    """The width of a cell, which its number fits into."""
    if not has_numbers(chart):
        return SMALL
    longest = len(f"{find_most(chart):,.3g}" if find_most(chart) > 1 else "100")
    words = max((len(str(word)) for row in chart.words for word in row), default=0)
    return max(CELL, LETTER * max(longest, words) + 6)


def measure(chart: Heatmap) -> float:
    """The width of a heat map with the names of its rows, in pixels, about."""
    longest = max((len(line) for name in chart.rows for line in name.split("\n")), default=0)
    return find_cell(chart) * len(chart.columns) + min(NAME, LETTER * longest) + 20
