"""Draws an architecture as a page, a picture, or the text of a graph, by the suffix of the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import get_args

from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.differences import HasArchitecture, to_architecture
from modgraph.files import refuse_foreign, write_output
from modgraph.inspect.page.content import FITTING, LEFT_OUT, Direction, DrawingOptions
from modgraph.inspect.page.errors import BadDrawingOption, MeaninglessDrawingOption, UnknownDrawingSuffix
from modgraph.inspect.scene import Scene, scene_of
from modgraph.store.architecture import Architecture

SUFFIXES = (".html", ".svg", ".dot", ".mmd")
WITHOUT_PARAMETERS = (".dot", ".mmd")


@dataclass(frozen=True)
class Drawing:
    """A drawing of an architecture. A notebook displays it as a small page that unfolds in levels, and `write` writes
    all of it to a file."""

    of: Architecture
    options: DrawingOptions = FITTING

    def __repr__(self) -> str:
        boxes = sum(1 for _ in self.scene.walk())
        return f"<Drawing of {self.scene.name}: {boxes} boxes>"

    def _repr_html_(self) -> str:
        """Render a small interactive page in a frame, for a notebook. Raises `ModgraphError` where V8 cannot start."""
        from modgraph.pages import embed_in_notebook, write_notebook_view

        return embed_in_notebook(write_notebook_view(self.of, self.options))

    @cached_property
    def scene(self) -> Scene:
        """The nested boxes of the graph."""
        return scene_of(self.of.graph)

    def write(self, path: str | Path, force: bool = False) -> Path:
        """Write an interactive page (`.html`), a picture (`.svg`), or a graph for graphviz (`.dot`) or Mermaid
        (`.mmd`).

        Returns the path. Raises `ModgraphError` for another suffix, and for a file that modgraph did not write, unless
        `force` is true.
        """
        check_drawing(path, force, self.options)
        write_output(path, self._content(Path(path).suffix.lower()).encode(), force)
        return Path(path)

    def _content(self, suffix: str) -> str:
        if suffix == ".html":
            from modgraph.pages import write_page_of_architecture

            return write_page_of_architecture(self.of, self.options)
        from modgraph.inspect.drawing import write_svg
        from modgraph.inspect.graph_text import write_dot, write_mermaid

        return {".svg": write_svg, ".dot": write_dot, ".mmd": write_mermaid}[suffix](self.scene, self.options)


def check_drawing(path: str | Path, force: bool, options: DrawingOptions = FITTING) -> None:
    """Raise `ModgraphError` if a drawing cannot be written to a path. Call it before the work."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ModgraphError([UnknownDrawingSuffix(path=str(path))])
    if "parameters" in options.without and suffix in WITHOUT_PARAMETERS:
        raise ModgraphError([MeaninglessDrawingOption(what="parameters", path=str(path))])
    refuse_foreign(path, force=force)


def check_options(depth: int | None, direction: str, without: str | Sequence[str], lengths: bool) -> DrawingOptions:
    """The options of a drawing. Raises `ModgraphError` for values that they do not have."""
    left_out = (without,) if isinstance(without, str) else tuple(dict.fromkeys(without))
    faults: list[Diagnostic] = []
    if depth is not None and (type(depth) is not int or depth < 0):
        faults.append(BadDrawingOption(option="depth", value=repr(depth), allowed="a number of levels from 0"))
    known: dict[str, Direction] = {each: each for each in get_args(Direction)}
    if direction not in known:
        faults.append(BadDrawingOption(option="direction", value=repr(direction), allowed=" or ".join(known)))
    unknown = [repr(each) for each in left_out if each not in LEFT_OUT]
    faults += [BadDrawingOption(option="left-out part", value=each, allowed=", ".join(LEFT_OUT)) for each in unknown]
    if faults:
        raise ModgraphError(faults)
    return DrawingOptions(depth, known[direction], left_out, lengths)


def draw(
    value: HasArchitecture | str | Path,
    path: str | Path | None = None,
    force: bool = False,
    *,
    depth: int | None = None,
    direction: str = "down",
    without: str | Sequence[str] = (),
    lengths: bool = False,
) -> Drawing:
    """Draw the architecture at a path, or of a program or run, and write it to a path if given. Raises `ModgraphError`
    and `TypeError`."""
    options = check_options(depth, direction, without, lengths)
    if path is not None:
        check_drawing(path, force, options)
    drawing = Drawing(to_architecture(value), options)
    if path is not None:
        drawing.write(path, force)
    return drawing
