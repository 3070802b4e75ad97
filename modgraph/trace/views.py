"""The views of a trace, each a picture. Imports what draws them at use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from modgraph.diagnostics import ModgraphError
from modgraph.extras import require
from modgraph.trace.errors import NoControllers, NoGroups, NoGrowth, NoHistory, NoPaths, NoSteps, NotOfAnImage, TooTall

if TYPE_CHECKING:
    from modgraph.trace.trace import Trace

EXAMPLES = 4  # rendered by the view of places, if so many fit; other views use all examples
NOTHING_TO_DRAW = (NoControllers, NoGroups, NoGrowth, NoHistory, NoPaths, NoSteps, NotOfAnImage, TooTall)
VIEWS = ("places", "groups", "training", "controllers", "paths", "steps", "growth")


def draw(view: str, trace: Trace, suffix: str, examples: int = EXAMPLES) -> bytes:
    """Render a view as a `.png`, `.svg` or `.pdf` file. Raises `ModgraphError`."""
    require("pictures", "a picture of a trace", "write numbers: -o trace.npz")
    file = "places_picture" if view == "places" else "pictures"
    picture = getattr(import_module(f"modgraph.trace.{file}"), f"{view}_picture")
    content: bytes = picture(trace.first(examples) if view == "places" else trace, suffix)
    return content


def render_pictures(trace: Trace) -> dict[str, bytes]:
    """Render every view that the trace has data for, as PNG, with as many examples as fit."""
    found: dict[str, bytes] = {}
    for view in VIEWS:
        for examples in range(EXAMPLES if view == "places" else 1, 0, -1):
            try:
                found[view] = draw(view, trace, ".png", examples)
                break
            except ModgraphError as error:
                if not isinstance(error.diagnostics[0], NOTHING_TO_DRAW):
                    raise
    return found
