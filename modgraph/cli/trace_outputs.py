"""What `trace` writes: files that the user names, and what it leaves in a run."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modgraph.diagnostics import ModgraphError, render_all
from modgraph.files import CannotWrite
from modgraph.store.records import json_text
from modgraph.trace.errors import NotKept
from modgraph.trace.views import draw, pictures_of

if TYPE_CHECKING:
    from modgraph.store.run_directory import RunDirectory
    from modgraph.trace.trace import Trace

PICTURES = (".png", ".svg", ".pdf")
PAGE = ".html"
SUFFIXES = (".npz", ".json", PAGE, *PICTURES)


def suffix_of(path: str) -> str:
    return Path(path).suffix.lower()


@dataclass(frozen=True)
class Outputs:
    """A trace with its summary, and how the user wants them."""

    trace: Trace
    summary: dict[str, Any]
    options: argparse.Namespace

    @cached_property
    def pictures(self) -> dict[str, bytes]:
        """Every view that the trace has something for."""
        return pictures_of(self.trace)

    def content(self, path: str) -> bytes:
        """What a file of this suffix holds. Raises `ModgraphError`."""
        match suffix_of(path):
            case ".json":
                return (json_text(self.summary, indent=2) + "\n").encode()
            case ".npz":
                return self.trace.first(self.options.examples).as_npz()
            case ".html":
                return self._page().encode()
            case suffix:
                return draw(self.options.view or "places", self.trace, suffix, self.options.examples)

    def _page(self) -> str:
        """The graph, and all that was traced of it."""
        from modgraph.inspect.growth_sections import growth_section
        from modgraph.inspect.page import Pane, page_of
        from modgraph.inspect.scene import scene_of
        from modgraph.inspect.trace_sections import loads_of, sections_of
        from modgraph.store.opened import opened

        shown = opened(self.options.path)
        pane = Pane(scene_of(shown.graph), shown.source, loads=loads_of(self.summary))
        grown = [growth_section(self.summary["growth"])] if self.summary["growth"] is not None else []
        return page_of(f"{shown.graph.name}: trace", [pane], [*sections_of(self.summary, self.pictures), *grown])

    def keep_in(self, run: RunDirectory) -> None:
        """Leave the trace in a run, unless it is there; of one that cannot be written to, the user is told."""
        from modgraph.store.stored_trace import keep_trace, keeps

        if keeps(run, self.summary):
            return
        try:
            keep_trace(run, self.summary, self.pictures, self.options.force)
            print(f"trace.json and {len(self.pictures)} pictures are in {run.path}", file=sys.stderr)
        except ModgraphError as error:
            reasons = [each.reason for each in error.diagnostics if isinstance(each, CannotWrite)]
            if not reasons:
                raise
            print(render_all([NotKept(path=str(run.path), reason=reasons[0])]), file=sys.stderr)
