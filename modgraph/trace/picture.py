"""A trace as a picture: what became of each place of an image.

Where a router chooses some modules for each token, a map shows which (Li et al., ICLR 2023, figure 3c); the gates of
others are maps of their own, a row for each module and a column for each round (Hu et al., ICLR 2024, figures 4 and 8).
"""

from __future__ import annotations

from modgraph.diagnostics import ModgraphError
from modgraph.trace.choice_maps import ChoiceMaps
from modgraph.trace.errors import TooTall
from modgraph.trace.gate_maps import GateMaps
from modgraph.trace.maps import Maps, maps_of
from modgraph.trace.sections import BOTTOM, ROUTE, TOP, Section
from modgraph.trace.sheet import Sheet, file_of
from modgraph.trace.trace import Trace

MOST_ROWS = 128


def picture_of(trace: Trace, suffix: str) -> bytes:
    """The content of a `.png`, `.svg` or `.pdf` file. Raises `ModgraphError`."""
    sections = [_section(trace, maps) for maps in maps_of(trace)]
    rows = len(trace) * sum(each.rows for each in sections)
    if rows > MOST_ROWS:
        raise ModgraphError([TooTall(rows=rows, most=MOST_ROWS)])
    return file_of(lambda: _drawn(trace, sections), suffix)


def _section(trace: Trace, maps: Maps) -> Section:
    return GateMaps(trace, maps) if maps.chosen is None else ChoiceMaps(trace, maps)


def _drawn(trace: Trace, sections: list[Section]) -> Sheet:
    heights = [ROUTE + len(trace) * each.height for each in sections]
    sheet = Sheet.blank(max(each.width for each in sections), TOP + sum(heights) + BOTTOM)
    top = TOP
    for each, height in zip(sections, heights, strict=True):
        each.draw(sheet, top)
        top += height
    return sheet
