"""An architecture as a page, a picture, or the text of a graph, by the suffix of the file that it is written to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from modgraph.diagnostics import ModgraphError
from modgraph.differences import HasArchitecture, architecture_of
from modgraph.files import refuse_foreign, write_output
from modgraph.inspect.page.errors import UnknownDrawingSuffix
from modgraph.inspect.scene import Scene, scene_of
from modgraph.store.architecture import Architecture

SUFFIXES = (".html", ".svg", ".dot", ".mmd")


@dataclass(frozen=True)
class Drawing:
    """A drawing of an architecture, which a notebook shows as a page and `write` writes to a file."""

    of: Architecture

    def __repr__(self) -> str:
        boxes = sum(1 for _ in self.scene.walk())
        return f"<Drawing of {self.scene.name}: {boxes} boxes>"

    def _repr_html_(self) -> str:
        """The page to explore, in a frame, as a notebook shows it. Raises `ModgraphError` where V8 cannot start."""
        from modgraph.pages import embed_in_notebook, page_of_architecture

        return embed_in_notebook(page_of_architecture(self.of))

    @cached_property
    def scene(self) -> Scene:
        """The nested boxes of the graph."""
        return scene_of(self.of.graph)

    def write(self, path: str | Path, force: bool = False) -> Path:
        """Write a page to explore (`.html`), a picture (`.svg`), or a graph for graphviz (`.dot`) or Mermaid (`.mmd`).

        Returns the path. Raises `ModgraphError` for another suffix, and for a file that modgraph did not write, unless
        `force` is true.
        """
        check_drawing(path, force)
        write_output(path, self._content(Path(path).suffix.lower()).encode(), force)
        return Path(path)

    def _content(self, suffix: str) -> str:
        if suffix == ".html":
            from modgraph.pages import page_of_architecture

            return page_of_architecture(self.of)
        from modgraph.inspect.drawing import dot_of, mermaid_of, svg_of

        return {".svg": svg_of, ".dot": dot_of, ".mmd": mermaid_of}[suffix](self.scene)


def check_drawing(path: str | Path, force: bool) -> None:
    """Raises `ModgraphError` where a drawing cannot be written to a path: before any work is done."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ModgraphError([UnknownDrawingSuffix(path=str(path))])
    refuse_foreign(path, force=force)


def draw(value: HasArchitecture | str | Path, path: str | Path | None = None, force: bool = False) -> Drawing:
    """The drawing of what stands at a path, or in a program or run; with a path written there. Raises `ModgraphError`
    and `TypeError`."""
    if path is not None:
        check_drawing(path, force)
    drawing = Drawing(architecture_of(value))
    if path is not None:
        drawing.write(path, force)
    return drawing
