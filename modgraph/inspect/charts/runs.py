"""Charts of many runs: curves of rows of runs with bands, and a point for each run.

Their data are a record for each run of each row: `row`, `run`, `name`; `curves`, by split the lists `steps`, `seconds`
and `values` by metric; and `values` by key. `fill` puts what is chosen into the blanks.
"""

from __future__ import annotations

from modgraph.inspect.charts.style import PAPER, Spec

HEIGHT = 340  # pixels
SHAPES = {"circle": "●", "square": "■", "triangle-up": "▲", "diamond": "◆"}  # of points, and the same as letters
MOST_POINTS = 4000  # that are found by the pointer
SCALES: dict[str, Spec] = {  # of chosen axes
    "linear": {"type": "linear", "zero": False, "padding": 8},
    "log": {"type": "log", "padding": 8, "nice": False},
}
FADED = 0.2  # opacity of what is not pointed at
IS_POINTED = "!(pointed || nearest.row) || indexof(nearest.row || [pointed], datum.row) >= 0"
IS_DISPLAYED = "indexof($displayed, datum.row) >= 0"
IS_MATCHED = f"{IS_DISPLAYED} && (!matched || indexof(matched, datum.run) >= 0)"
DURATION = (
    "({0} < 60 ? format({0}, '.3~r') + ' s' : {0} < 3600 ? format({0} / 60, '.3~r') + ' min' "
    ": format({0} / 3600, '.3~r') + ' h')"
)

NUMBER = "format({0}, abs({0}) < 1e4 ? '.4~g' : '.3~s')"


def curves_of_rows(interactive: bool = False) -> Spec:
    """Describe a curve for each row: the mean of `$metric` of `$split` over `$over`, with a band of one standard
    deviation; dotted where only some of its runs have a value."""
    pointed = {"name": "pointed", "value": None}
    return {
        **_frame(),
        **({"params": [pointed]} if interactive else {}),
        "transform": [*_points_of_curves(), *_average()],
        "encoding": {
            "x": _axis("at", "$x_title", {"zero": True, "nice": False}, {"grid": False, "format": "~s"}),
            "color": {"field": "row", "type": "nominal", "scale": "$colours", "legend": "$legend"},
            "tooltip": {"field": "about"},
            "description": {"field": "row"},
        },
        "layer": [
            _layer({"type": "area", "opacity": 0.14}, interactive, y=_height("low"), y2={"field": "high"}),
            _layer({"type": "line", "strokeWidth": 1.8, "strokeDash": [1, 4]}, interactive, y=_height("mean")),
            _layer({"type": "line", "strokeWidth": 1.8, "point": {"size": 18}}, interactive, y=_height("whole_mean")),
            *([_nearest()] if interactive else []),
        ],
    }


def points_of_runs(interactive: bool = False) -> Spec:
    """Describe a point for each run: `$y` against `$x`, in the colours of `$colour`, or of its row. In a page, a
    rectangle selects runs."""
    mark = {"type": "point", "filled": True, "size": 72, "stroke": PAPER, "strokeWidth": 0.8}
    shapes = {"domain": "$rows", "range": "$shapes"}
    opacity = {"condition": {"test": IS_MATCHED, "value": 0.9}, "value": FADED}
    matched = [{"name": "matched", "value": None}]
    brush = {"name": "brush", "select": {"type": "interval", "clear": "dblclick"}}
    encoding = {
        "x": _axis("x", "$x_title", "$x_scale", {"grid": False, "format": "~s"}),
        "y": _height("y"),
        "color": {"field": "colour", "type": "$kind", "scale": "$colours", "legend": "$legend", "title": "$colour"},
        "shape": {"field": "row", "type": "nominal", "scale": shapes, "legend": None},
        "tooltip": {"field": "about"},
        "description": {"field": "about"},
    }
    return {
        **_frame(),
        **({"params": [*matched, brush]} if interactive else {}),
        "transform": [
            *({"calculate": f"datum.values[${key}]", "as": key} for key in ("x", "y")),
            {"calculate": "$colour ? datum.values[$colour] : datum.row", "as": "colour"},
            {"filter": "isNumber(datum.x) && isNumber(datum.y)"},
            {"filter": "(!$log_x || datum.x > 0) && (!$log_y || datum.y > 0)"},
            *([] if interactive else [{"filter": IS_DISPLAYED}]),
            {"calculate": f"datum.name + '\\n' + {_say('y')} + '\\n' + {_say('x')}", "as": "about"},
        ],
        "mark": mark,
        "encoding": encoding | ({"opacity": opacity} if interactive else {}),
    }


def _frame() -> Spec:
    return {"width": "$width", "height": HEIGHT, "autosize": {"type": "fit-x", "contains": "padding"}}


def _points_of_curves() -> list[Spec]:
    return [
        {"filter": IS_DISPLAYED},
        {"calculate": "datum.curves[$split] || {}", "as": "part"},
        {"filter": "datum.part.values && datum.part.values[$metric]"},
        {"calculate": "datum.part.steps", "as": "step"},
        {"calculate": "datum.part.seconds", "as": "seconds"},
        {"calculate": "datum.part.values[$metric]", "as": "value"},
        {"flatten": ["step", "seconds", "value"]},
        {"filter": "isValid(datum.value)"},
    ]


def _average() -> list[Spec]:
    """Means over the runs of a row at each step; those of the seconds where all have them."""
    averages = [("mean", "value", "mean"), ("stdev", "value", "deviation"), ("count", None, "count")]
    seconds = [("mean", "seconds", "seconds"), ("valid", "seconds", "timed")]
    whole = {"joinaggregate": [{"op": "max", "field": "count", "as": "whole"}], "groupby": ["row"]}
    lowest = "$log_y ? max(datum.mean - datum.deviation, datum.least) : datum.mean - datum.deviation"
    about = "datum.row + '\\nstep ' + format(datum.step, ',d') + (datum.known ? ', ' + {} : '') + ': ' + {} + {}"
    spread = "(datum.count > 1 ? ' ± ' + format(datum.deviation, '.3~g') + ', ' + datum.count + ' runs' : '')"
    return [
        {
            "aggregate": [{"op": op, "field": field, "as": name} for op, field, name in (*averages, *seconds)],
            "groupby": ["row", "step"],
        },
        {"calculate": "datum.timed == datum.count", "as": "known"},
        {"calculate": "$over == 'step' ? datum.step : datum.known ? datum.seconds : null", "as": "at"},
        {"filter": "isValid(datum.at) && (!$log_y || datum.mean > 0)"},
        whole,
        {"joinaggregate": [{"op": "min", "field": "mean", "as": "least"}]},
        {"calculate": f"datum.count > 1 ? {lowest} : null", "as": "low"},
        {"calculate": "datum.count > 1 ? datum.mean + datum.deviation : null", "as": "high"},
        {"calculate": "datum.count == datum.whole ? datum.mean : null", "as": "whole_mean"},
        {
            "calculate": about.format(DURATION.format("datum.seconds"), NUMBER.format("datum.mean"), spread),
            "as": "about",
        },
    ]


def _nearest() -> Spec:
    """The point nearest to the pointer, of so many that are found in time; its row stands out."""
    select = {"type": "point", "on": "pointerover", "nearest": True, "clear": "pointerout", "fields": ["row", "step"]}
    opacity = {"condition": {"param": "nearest", "empty": False, "value": 1}, "value": 0}
    return {
        "params": [{"name": "nearest", "select": select}],
        "transform": [
            {"window": [{"op": "row_number", "as": "number"}]},
            {"joinaggregate": [{"op": "count", "as": "all"}]},
            {"filter": f"datum.number % ceil(datum.all / {MOST_POINTS}) == 0"},
        ],
        "mark": {"type": "point", "filled": True, "size": 70},
        "encoding": {"y": _height("mean"), "opacity": opacity},
    }


def _layer(mark: Spec, interactive: bool, **encoding: Spec) -> Spec:
    """A part of each curve; in a page, those of other rows fade where the pointer is at one."""
    if interactive:
        encoding["opacity"] = {
            "condition": {"test": IS_POINTED, "value": mark.get("opacity", 1)},
            "value": FADED * mark.get("opacity", 1),
        }
    return {"mark": mark, "encoding": encoding}


def _height(field: str) -> Spec:
    return _axis(field, "$y_title", "$y_scale", {"domain": False, "ticks": False})


def _axis(field: str, title: str, scale: Spec | str, axis: Spec) -> Spec:
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, "axis": axis | {"tickCount": 6}}


def _say(end: str) -> str:
    seconds, number = DURATION.format(f"datum.{end}"), NUMBER.format(f"datum.{end}")
    return f"${end}_name + ' ' + (${end} == 'seconds' ? {seconds} : {number})"
