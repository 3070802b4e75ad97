"""The views of a trace, each a picture. What draws them is imported when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from modgraph.diagnostics import ModgraphError
from modgraph.trace.errors import NoControllers, NoGroups, NoGrowth, NoHistory, NoPaths, NoSteps, NotOfAnImage, TooTall

if TYPE_CHECKING:
    from modgraph.trace.trace import Trace

EXAMPLES = 4  # drawn by a view that shows examples, if they are not more than it holds
NOTHING_TO_DRAW = (NoControllers, NoGroups, NoGrowth, NoHistory, NoPaths, NoSteps, NotOfAnImage, TooTall)


@dataclass(frozen=True)
class View:
    """A way to draw a trace: the function of a module that does.

    `statistic` says that it is drawn of all examples, not of the first few.
    """

    module: str
    function: str
    statistic: bool = True

    def draw(self, trace: Trace, suffix: str, examples: int) -> bytes:
        """The content of a `.png`, `.svg` or `.pdf` file. Raises `ModgraphError`."""
        draw: Callable[[Trace, str], bytes] = getattr(import_module(self.module), self.function)
        return draw(trace if self.statistic else trace.first(examples), suffix)


VIEWS = {
    "places": View("modgraph.trace.picture", "picture_of", statistic=False),
    "groups": View("modgraph.trace.shares_picture", "groups_picture"),
    "training": View("modgraph.trace.training_pictures", "training_picture"),
    "controllers": View("modgraph.trace.training_pictures", "controllers_picture"),
    "paths": View("modgraph.trace.paths_picture", "paths_picture"),
    "steps": View("modgraph.trace.steps_picture", "steps_picture"),
    "growth": View("modgraph.trace.growth_picture", "growth_picture"),
}


def pictures_of(trace: Trace) -> dict[str, bytes]:
    """Every view that a trace has something for, as PNG."""
    drawn = {name: _drawn(view, trace) for name, view in VIEWS.items()}
    return {name: picture for name, picture in drawn.items() if picture is not None}


def _drawn(view: View, trace: Trace) -> bytes | None:
    """A view, of as many examples as it can hold; None if the trace has nothing for it."""
    return next(_tries(view, trace), None)


def _tries(view: View, trace: Trace) -> Iterator[bytes]:
    for examples in range(1 if view.statistic else EXAMPLES, 0, -1):
        try:
            yield view.draw(trace, ".png", examples)
        except ModgraphError as error:
            if not isinstance(error.diagnostics[0], NOTHING_TO_DRAW):
                raise
