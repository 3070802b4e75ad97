"""The look of charts: fonts, lines and colours. Colours are names of a page's style sheet, light and dark."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from typing import Any

Spec = dict[str, Any]  # Vega-Lite, as JSON

FONT = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif'
LETTER = 6.2  # pixels of a letter, about
NAME = 260  # pixels of the longest label of an axis; the rest is an ellipsis
SERIES = ("accent", "pool-line", "tokenizer-line", "loss-line", "router-line", "output-line", "scan-line", "input-line")
MUTED, INK, PAPER, GRID = "var(--muted)", "var(--ink)", "var(--paper)", "var(--group-line)"
MODULES = "#4e79a7 #f28e2b #59a14f #e15759 #b07aa1 #76b7b2 #edc948 #9c755f #ff9da7 #79706e".split()

CONFIG: Spec = {
    "background": None,
    "font": FONT,
    "padding": 4,
    "axis": {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "titleFontWeight": "normal",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "gridColor": GRID,
        "tickColor": GRID,
        "domainColor": GRID,
        "labelLimit": NAME,
    },
    "legend": {
        "labelColor": INK,
        "titleColor": MUTED,
        "titleFontWeight": "normal",
        "titleFontSize": 11,
        "labelFontSize": 11,
        "labelLimit": NAME,
        "symbolLimit": 0,
        "gradientStrokeColor": GRID,
    },
    "title": {"anchor": "start", "fontSize": 12, "color": INK, "fontWeight": "normal"},
    "view": {"stroke": None},
}


def choose_line_colours(lines: int) -> list[str]:
    """Choose colours of lines, as distinct as possible: those of the page, if they suffice."""
    return [f"var(--{name})" for name in SERIES[:lines]] if lines <= len(SERIES) else choose_colours(lines)


def choose_colours(modules: int) -> list[str]:
    """Choose a colour for every module, as distinct as possible, for light and for dark paper."""
    if modules <= len(MODULES):
        return MODULES[:modules]
    hues = ((at / modules, (0.42, 0.55, 0.68)[at % 3]) for at in range(modules))
    return [_write_colour(colorsys.hls_to_rgb(hue, lightness, 0.62)) for hue, lightness in hues]


def _write_colour(colour: Sequence[float]) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in colour)
