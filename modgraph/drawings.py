"""Draws an architecture as a page, a picture, or the text of a graph, by the suffix of the file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from modgraph.diagnostics import ModgraphError
from modgraph.differences import HasArchitecture, to_architecture
from modgraph.files import refuse_foreign, write_output
from modgraph.inspect.page.errors import UnknownDrawingSuffix
from modgraph.inspect.scene import Scene, scene_of
from modgraph.store.architecture import Architecture

SUFFIXES = (".html", ".svg", ".dot", ".mmd")


@dataclass(frozen=True)
class Drawing:
    """A drawing of an architecture. A notebook displays it as a small page that unfolds in levels, and `write` writes
    all of it to a file."""

    of: Architecture

    def __repr__(self) -> str:
        boxes = sum(1 for _ in self.scene.walk())
        return f"<Drawing of {self.scene.name}: {boxes} boxes>"

    def _repr_html_(self) -> str:
        """Render a small interactive page in a frame, for a notebook. Raises `ModgraphError` where V8 cannot start."""
        from modgraph.pages import embed_in_notebook, write_notebook_view

        return embed_in_notebook(write_notebook_view(self.of))

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
        check_drawing(path, force)
        write_output(path, self._content(Path(path).suffix.lower()).encode(), force)
        return Path(path)

    def _content(self, suffix: str) -> str:
        if suffix == ".html":
            from modgraph.pages import write_page_of_architecture

            return write_page_of_architecture(self.of)
        from modgraph.inspect.drawing import write_dot, write_mermaid, write_svg

        return {".svg": write_svg, ".dot": write_dot, ".mmd": write_mermaid}[suffix](self.scene)


def check_drawing(path: str | Path, force: bool) -> None:
    """Raise `ModgraphError` if a drawing cannot be written to a path. Call it before the work."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ModgraphError([UnknownDrawingSuffix(path=str(path))])
    refuse_foreign(path, force=force)


def draw(value: HasArchitecture | str | Path, path: str | Path | None = None, force: bool = False) -> Drawing:
    """Draw the architecture at a path, or of a program or run, and write it to a path if given. Raises `ModgraphError`
    and `TypeError`."""
    if path is not None:
        check_drawing(path, force)
    drawing = Drawing(to_architecture(value))
    if path is not None:
        drawing.write(path, force)
    return drawing
