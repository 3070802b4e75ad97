"""The page's renderer, run from Python: the same JavaScript, in V8."""

from __future__ import annotations

import atexit
import gzip
import json
import sys
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from modgraph.diagnostics import ModgraphError
from modgraph.inspect.page.errors import TooFewAddresses

if TYPE_CHECKING:
    from py_mini_racer import MiniRacer

ADDRESSES = 2**40  # bytes: V8 reserves more, takes less where it must, and ends the process where that is too little
FIRST_BOXES = 60  # how many boxes are unfolded at first, about
RENDERER = ("scene.js", "layout.js", "draw.js", "svg_text.js")


def text_of(name: str) -> str:
    """A file of the page."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def packed_elk() -> bytes:
    """The layout library, compressed by gzip."""
    return files(__package__).joinpath("elk").joinpath("elk.bundled.js.gz").read_bytes()


ELK_NOTICE = "elkjs 0.12.1, the Eclipse Layout Kernel: EPL-2.0, its source at https://github.com/kieler/elkjs"


@cache
def elk() -> str:
    """The layout library."""
    return gzip.decompress(packed_elk()).decode()


@cache
def _engine() -> MiniRacer:
    from py_mini_racer import MiniRacer

    if sys.platform != "win32":
        import resource

        most, _ = resource.getrlimit(resource.RLIMIT_AS)
        if most != resource.RLIM_INFINITY and most < ADDRESSES:
            raise ModgraphError([TooFewAddresses(most=most // 2**30)])
    engine = MiniRacer()
    atexit.register(engine.close)  # later, without its thread, it would wait for ever
    for script in (text_of("engine.js"), elk(), "\n".join(map(text_of, RENDERER))):
        engine.eval(script)
    return engine


def rendered(pane: dict[str, Any], budget: int | None = FIRST_BOXES, routes: bool = False) -> dict[str, Any]:
    """A pane in JSON laid out and drawn: `state`, what is unfolded; `laid`, positions; `svg`, the elements.

    Unfolded are about `budget` boxes, or all but repetitions; with `routes` only what leads to boxes that have a load.
    Raises `ModgraphError` where V8 cannot start.
    """
    engine = _engine()
    engine.eval(f"render({json.dumps(pane)}, {json.dumps(budget)}, {json.dumps(routes)}); 0")
    result: Any = engine.eval("rendered")
    assert isinstance(result, str), engine.eval("fault")
    drawn: dict[str, Any] = json.loads(result)
    return drawn
