"""Writes a self-contained HTML file. Python runs the page's own renderer, which is JavaScript, in V8."""

from __future__ import annotations

import atexit
import base64
import gzip
import hashlib
import json
import sys
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from modgraph.diagnostics import ModgraphError
from modgraph.extras import require
from modgraph.inspect.page.content import Pane, Plan, Section
from modgraph.inspect.page.errors import TooFewAddresses
from modgraph.inspect.quote import escape_html, script_json
from modgraph.version import VERSION

if TYPE_CHECKING:
    from py_mini_racer import MiniRacer

SCRIPTS = """
scene.js layout.js marks.js draw.js dom.js theme.js zoom.js source.js panel.js pane.js charts.js
fold.js changes.js app.js
""".split()
TAB_OF_DATA = '<button type="button" role="tab" class="" data-do="tab" data-tab="charts">Data</button>'
ELK_NOTICE = "elkjs 0.12.1, the Eclipse Layout Kernel: EPL-2.0, its source at https://github.com/kieler/elkjs"
ADDRESSES = 2**40  # bytes: V8 reserves more, accepts less, and ends the process with too little
FIRST_BOXES = 60  # number of boxes unfolded at first, approximately
RENDERER = ("scene.js", "layout.js", "marks.js", "draw.js", "svg_text.js")


def page_of(title: str, panes: Sequence[Pane], sections: Sequence[Section] = (), plan: Plan | None = None) -> str:
    """The page: one graph with its source, or two side by side; sections have a tab of their own. With a plan, the page
    of two leads from change to change."""
    changes = [] if plan is None else [each.after or each.before for each in plan.changes]
    data, parts, template = [pane.as_json() for pane in panes], list[str](), text_of("pane.html")
    for pane, record in zip(panes, data, strict=True):
        drawing = render(record, changes=() if any(each.loads for each in panes) else changes)
        record |= {"state": drawing["state"], "laid": drawing["laid"]}
        heading = f"<h2>{escape_html(pane.label)}</h2>" if pane.label else ""
        marks = text_of("legend_of_marks.html") if pane.marks else ""
        legend, sourceless = (
            "" if parts else text_of("legend.html").replace("<ul>", f"<ul>{marks}"),
            "" if pane.sources() else " sourceless",
        )
        parts.append(template.format(sourceless=sourceless, heading=heading, svg=drawing["svg"], legend=legend))
    script = join_scripts(SCRIPTS)
    style = read_style_of_drawing() + text_of("page.css") + text_of("changes.css")
    return text_of("page.html").format(
        policy=escape_html(write_policy(style, script, elk())),
        version=VERSION,
        title=escape_html(title),
        style=style,
        count="two" if len(panes) > 1 else "one",
        wide=" wide" if sections else "",
        tab_of_data=TAB_OF_DATA if sections else "",
        panes="".join(parts),
        data=script_json(
            {
                "panes": data,
                "sections": [section.as_json() for section in sections],
                "plan": None if plan is None else plan.as_json(),
            }
        ),
        elk=base64.b64encode(elk_gzip()).decode(),
        notice=ELK_NOTICE,
        script=script,
    )


def read_style_of_drawing() -> str:
    """The style of a drawing, light and dark."""
    return f'{text_of("drawing.css")}:root[data-theme="dark"] {{ color-scheme: dark;\n{text_of("dark.css")}}}\n'


def join_scripts(names: Sequence[str]) -> str:
    """The script of a page, from its files."""
    return "(() => {\n" + "\n".join(map(text_of, names)) + "})();\n"


def write_policy(style: str, *scripts: str) -> str:
    """The content security policy of a page that loads nothing, and runs only these scripts."""
    allowed = " ".join(map(_hash, scripts))
    policy = f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; "
    return policy + "img-src data:; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# ------------------------------------------------------------ the renderer


def text_of(name: str) -> str:
    """A file of the page."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def elk_gzip() -> bytes:
    """The layout library, compressed by gzip."""
    return files(__package__).joinpath("elk").joinpath("elk.bundled.js.gz").read_bytes()


@cache
def elk() -> str:
    """The layout library."""
    return gzip.decompress(elk_gzip()).decode()


@cache
def _engine() -> MiniRacer:
    require("visualize", "drawing a graph")
    from concurrent.futures import ThreadPoolExecutor

    from py_mini_racer import MiniRacer

    if sys.platform != "win32":
        import resource

        most, _ = resource.getrlimit(resource.RLIMIT_AS)
        if most != resource.RLIM_INFINITY and most < ADDRESSES:
            raise ModgraphError([TooFewAddresses(most=most // 2**30)])
    with ThreadPoolExecutor(1) as aside:  # here it would run on a loop of events that may end before it
        engine = aside.submit(MiniRacer).result()
    atexit.register(engine.close)  # later, without its thread, it would wait for ever
    for script in (text_of("engine.js"), elk(), "\n".join(map(text_of, RENDERER))):
        engine.eval(script)
    return engine


def render(
    pane: dict[str, Any], budget: int = FIRST_BOXES, routes: bool = False, changes: Sequence[str] = ()
) -> dict[str, Any]:
    """Lay out and draw a pane in JSON: `state` is the unfolding, `laid` the positions, `svg` the elements.

    About `budget` boxes are unfolded; with `routes`, only those that lead to boxes with a load, with `changes`, only
    those that lead to boxes with these ids. Raises `ModgraphError`
    where V8 cannot start.
    """
    engine = _engine()
    arguments = ", ".join(map(json.dumps, (pane, budget, routes, [*changes])))
    engine.eval(f"render({arguments}); 0")
    result: Any = engine.eval("rendered")
    assert isinstance(result, str), engine.eval("fault")
    drawing: dict[str, Any] = json.loads(result)
    return drawing
