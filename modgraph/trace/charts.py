"""Renders charts of a page (`modgraph.inspect.page.content`) as parts of a picture."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from modgraph.inspect.page.content import Curves, Heatmap
from modgraph.trace.sheet import WORDS, Part, Sheet, choose_colours, shorten

LETTER, LINE = 0.075, 0.17  # inches of a letter and of a line
ROW, COLUMN, GAP, LEAST = 0.22, 0.5, 0.35, 2.8  # inches of a cell, between charts, and of the narrowest title
DARK = 0.6  # share of the colour scale above which words are white
MOST_LETTERS = 48  # of a row's name


def heat_map(
    chart: Heatmap, column: float = COLUMN, corner: str = "", words: Sequence[Sequence[object]] | None = None
) -> Part:
    """Render each value in percent, or its own words, on its colour. Names of columns stand upright where they do not
    fit."""
    table, rows = np.array(chart.values), [shorten(row, MOST_LETTERS) for row in chart.rows]
    most = chart.most or max(table.max(), 1e-9)
    width, height = column * table.shape[1], ROW * len(rows)
    title = textwrap.wrap(chart.title, int(max(width, LEAST) / LETTER))
    longest = LETTER * max(len(line) for name in chart.columns for line in name.split("\n"))
    upright = longest > column
    above = LINE * len(title) + 0.1
    head = above + (longest if upright else LINE * (1 + chart.columns[0].count("\n"))) + 0.1
    names = 0.25 + LETTER * max(map(len, (*rows, *corner.split("\n"))))

    def draw(sheet: Sheet, left: float, top: float) -> None:
        left += names
        sheet.write(left, top + above - 0.05, "\n".join(title), va="bottom", color="0.35")
        sheet.write(left - 0.08, top + head - 0.05, corner, ha="right", va="bottom", color="0.5")
        axes = sheet.axes(left, top + head, width, height)
        axes.pcolormesh(table, cmap="Blues", vmin=0, vmax=most, edgecolors="white", linewidth=0.8)
        axes.invert_yaxis()
        axes.xaxis.tick_top()
        axes.set_xticks(np.arange(table.shape[1]) + 0.5, chart.columns, rotation=90 if upright else 0, **WORDS)
        axes.set_yticks(np.arange(len(rows)) + 0.5, rows, **WORDS)
        axes.tick_params(length=0)
        axes.spines[:].set_edgecolor("0.7")
        for (row, at), value in np.ndenumerate(table):
            text = f"{100 * value:.0f}" if words is None else str(words[row][at])
            style = {"color": "white" if value > DARK * most else "black", "ha": "center", "va": "center"}
            axes.text(at + 0.5, row + 0.5, text, **WORDS | style | {"fontsize": 8})

    across = max(width, *(LETTER * len(line) for line in title)) if title else width
    return Part(names + across + GAP, head + height + GAP, draw, len(rows))


LEFT, WIDTH, HEIGHT, LEGEND, BELOW = 0.7, 5.8, 1.7, 2.0, 0.6  # inches of curves and around them
FEW = 60  # the most points with large dots


def curves(
    chart: Curves, levels: Mapping[str, float], above: float = 0, mark: Callable[[Any], None] | None = None
) -> Part:
    """Render a line for each curve, from zero up, and a dotted line at each level. `mark` adds to the axes, for example
    names in the inches above them."""
    last = max(x for curve in chart.series for x, _ in curve.points if x == x)

    def draw(sheet: Sheet, left: float, top: float) -> None:
        sheet.title(top + 0.2, chart.title)
        axes = sheet.axes(left + LEFT, top + 0.35 + above, WIDTH, HEIGHT)
        for curve, colour in zip(chart.series, choose_colours(len(chart.series)), strict=True):
            style = {"linewidth": 1, "marker": ".", "markersize": 5 if last < FEW else 2}
            axes.plot(*np.transpose(curve.points), color=colour, label=curve.name, **style)
        for name, level in levels.items():
            axes.axhline(level, color="black", linestyle=":", linewidth=1, label=name)
        if mark is not None:
            mark(axes)
        axes.set_ylim(0, None)
        axes.set_xlabel(chart.x_label, **WORDS)
        axes.tick_params(labelsize=8)
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.02), frameon=False, fontsize=WORDS["fontsize"])

    return Part(LEFT + WIDTH + LEGEND, 0.35 + above + HEIGHT + BELOW, draw)
