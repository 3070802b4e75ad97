"""What is known of architectures without training them, whatever holds them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from modgraph.differences import HasArchitecture, differences, to_architecture
from modgraph.drawings import Drawing, draw
from modgraph.inspect.diff import Comparison

Holder = HasArchitecture | str | Path


def diff(before: Holder, after: Holder, **lengths: int) -> Comparison:
    """What two architectures differ in: nodes, costs, what becomes of weights, and of runs the weights' values. Of two
    runs also recipes, data, metrics, seconds and routing.

    Each is a `Program`, a `Run`, or the path of a spec, a run, a checkpoint, a graph or a bundle. Axes of any length
    have the given ones, or 1. Raises `ModgraphError` for what cannot be read, and `TypeError` for anything else.
    """
    return differences(to_architecture(before), to_architecture(after), lengths)


def visualize(
    architecture: Holder,
    path: str | Path | None = None,
    force: bool = False,
    *,
    depth: int | None = None,
    direction: str = "down",
    without: str | Sequence[str] = (),
    lengths: bool = False,
) -> Drawing:
    """The graph of a `Program`, a `Run`, or of what stands at a path, as a drawing that a notebook shows.

    With a path it is written there: a page to explore (`.html`), a picture (`.svg`), graphviz (`.dot`), Mermaid
    (`.mmd`). Raises `ModgraphError` for another suffix or option and for a file that modgraph did not write, unless
    `force` is true, and `TypeError` for what has no architecture.

    A drawing unfolds boxes to a `depth`, or as many as can be read at once, and lets values go `down` or to the
    `right`. It can be `without` losses, shapes or parameters (one, or several), and has edges from `lengths` of axes on
    request.
    """
    return draw(architecture, path, force, depth=depth, direction=direction, without=without, lengths=lengths)
