"""Writes a self-contained HTML file. Python runs the page's own renderer, which is JavaScript, in V8."""

from __future__ import annotations

import atexit
import base64
import gzip
import hashlib
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from modgraph.diagnostics import ModgraphError
from modgraph.extras import require
from modgraph.inspect.charts import CONFIG, describe
from modgraph.inspect.page.content import Content, DrawingOptions, Fold, Pane, Plan, Section
from modgraph.inspect.page.errors import TooFewAddresses
from modgraph.inspect.page.libraries import Library
from modgraph.inspect.quote import escape_html, script_json
from modgraph.version import VERSION

if TYPE_CHECKING:
    from py_mini_racer import MiniRacer

DRAWER = ("scene.js", "folds.js", "layout.js", "marks.js", "draw.js")
VIEWER = ("dom.js", "packed.js", "theme.js", "splitter.js", "zoom.js", "source.js", "panel.js", "pane.js", "levels.js")
SCRIPTS = (*DRAWER, *VIEWER, "chart.js", "charts.js", "changes.js", "app.js")
STYLES = ("page.css", "tip.css", "changes.css")
Room = tuple[float, float]  # width and height of a drawing at full size
Extent = Room | int | None
TAB_OF_DATA = '<button type="button" role="tab" class="" data-do="tab" data-tab="charts">Data</button>'
ADDRESSES = 2**40  # bytes: V8 reserves more, accepts less, and ends the process with too little
RENDERER = (*DRAWER, "svg_text.js")
SCALE = 9 / 11  # at first: the smallest text has 11 pixels at full size, and 9 on the screen
SCREEN = (1280, 800)  # pixels of a window for which the first unfolding is chosen
SCREENS = 2  # that a drawing may be high
BAR, SOURCE, PANEL, MARGIN = 47, 330, 300, 24  # pixels that a page takes from it
ROOM_OF_LEVELS = (700 / SCALE, 1000 / SCALE)  # of the first level of a page in a notebook
BOXES_OF_LEVELS = (8, 25, 60, 140)  # unfolded in its other levels, approximately
MOST_BOXES = 400  # in the finest level


def page_of(title: str, panes: Sequence[Pane], sections: Sequence[Section] = (), plan: Plan | None = None) -> str:
    """The page: one graph with its source, or two side by side; sections have a tab of their own. With a plan, the page
    of two leads from change to change."""
    data, drawings = [pane.as_json() for pane in panes], list[str]()
    loaded = any(pane.loads for pane in panes)
    marked = [id for pane in panes for id in pane.marks]
    changes = [] if loaded else marked if plan is None else [each.after or each.before for each in plan.changes]
    for pane, record in zip(panes, data, strict=True):
        drawing = render(record, room_of(len(panes), bool(pane.sources())), pane.options, changes=changes)
        record |= {"state": drawing["state"], "positions": drawing["positions"]}
        drawings.append(drawing["svg"])
    described = [_section_as_json(section) for section in sections]
    has_charts = any(map(_has_chart, sections))
    libraries = [Library.ELK, *([Library.VEGA] if has_charts else [])]
    content = script_json({"panes": data, "sections": described, "plan": plan and plan.as_json(), "config": CONFIG})
    script = f'<script type="application/json" id="data">{content}</script>'
    return _fill(title, panes, drawings, script, libraries, bool(sections))


def page_of_levels(title: str, panes: Sequence[Pane]) -> str:
    """The page of one or two graphs that unfold in a few levels, arranged now: small, because it needs no ELK."""
    data = [pane.as_json() for pane in panes]
    for pane, record in zip(panes, data, strict=True):
        levels, first = lay_out_levels(record, pane.options)
        record |= {"levels": levels, "first": first, **levels[first]}
    content = gzip.compress(json.dumps({"panes": data, "sections": []}).encode(), 9, mtime=0)
    script = f'<script type="text/plain" id="data">{base64.b64encode(content).decode()}</script>'
    return _fill(title, panes, [""] * len(panes), script, [], False)


def _fill(
    title: str, panes: Sequence[Pane], drawings: Sequence[str], data: str, libraries: Sequence[Library], has_data: bool
) -> str:
    """Fill the template of a page."""
    parts, template = list[str](), text_of("pane.html")
    for pane, svg in zip(panes, drawings, strict=True):
        heading = f"<h2>{escape_html(pane.label)}</h2>" if pane.label else ""
        marks = text_of("legend_of_marks.html") if pane.marks else ""
        legend = "" if parts else text_of("legend.html").replace("<ul>", f"<ul>{marks}")
        sourceless = "" if pane.sources() else " sourceless"
        parts.append(template.format(sourceless=sourceless, heading=heading, svg=svg, legend=legend))
    script, style = join_scripts(SCRIPTS), read_style_of_drawing() + "".join(map(text_of, STYLES))
    return text_of("page.html").format(
        policy=escape_html(write_policy(style, script, *(each.script() for each in libraries))),
        version=VERSION,
        title=escape_html(title),
        style=style,
        count="two" if len(panes) > 1 else "one",
        wide=" wide" if has_data else "",
        tab_of_data=TAB_OF_DATA if has_data else "",
        panes="".join(parts),
        data=data,
        libraries="\n".join(each.embed() for each in libraries),
        script=script,
    )


def _section_as_json(section: Section) -> dict[str, Any]:
    """A section with the descriptions of its charts."""
    return section.as_json() | {"content": [*map(_content_as_json, section.content)]}


def _has_chart(holder: Section | Fold) -> bool:
    return any(_has_chart(each) if isinstance(each, Fold) else describe(each) is not None for each in holder.content)


def _content_as_json(content: Content) -> dict[str, Any]:
    if isinstance(content, Fold):
        return content.as_json() | {"content": [*map(_content_as_json, content.content)]}
    spec = describe(content)
    return content.as_json() | ({} if spec is None else {"spec": spec})


@cache
def read_colours() -> dict[str, str]:
    """The colours of light drawings, by name."""
    return dict(re.findall(r"--([\w-]+): ([^;]+);", text_of("drawing.css")))


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
    for script in (text_of("engine.js"), Library.ELK.script(), "\n".join(map(text_of, RENDERER))):
        engine.eval(script)
    return engine


def lay_out_levels(pane: dict[str, Any], options: DrawingOptions) -> tuple[list[dict[str, Any]], int]:
    """Lay out a pane in JSON at each level of folding, from coarse to fine, and find the first to display: what can be
    read at first sight.

    A level has a `state` and `positions`. The last one has all unfolded, unless that is too much.
    """
    first = _lay_out_level(pane, ROOM_OF_LEVELS, options)
    options = replace(options, depth=None, without=tuple(first["state"]["without"]))
    others = [_lay_out_level(pane, boxes, options) for boxes in (*BOXES_OF_LEVELS, None)]
    levels = [first]
    for level in others:
        if len(level["positions"]["boxes"]) <= MOST_BOXES and all(each["state"] != level["state"] for each in levels):
            levels.append(level)
    levels.sort(key=lambda level: len(level["state"]["open"]))
    return levels, levels.index(first)


def _lay_out_level(pane: dict[str, Any], room: Extent, options: DrawingOptions) -> dict[str, Any]:
    drawing = render(pane, room, options)
    return {"state": drawing["state"], "positions": _round(drawing["positions"])}


def _round(value: Any) -> Any:
    """Round all numbers of positions to tenths of a pixel."""
    match value:
        case dict():
            return {key: _round(each) for key, each in value.items()}
        case list():
            return [_round(each) for each in value]
        case float():
            return round(value, 1)
        case _:
            return value


def room_of(panes: int, has_source: bool) -> Room:
    """The room for a drawing that can be read in a page."""
    width = (SCREEN[0] - PANEL) / panes - SOURCE * (has_source and panes == 1)
    height = (SCREEN[1] - BAR) * (1 if panes == 1 else 0.6)  # of two, the sources stand below
    return (width - MARGIN) / SCALE, SCREENS * (height - MARGIN) / SCALE


def render(
    pane: dict[str, Any],
    room: Extent,
    options: DrawingOptions,
    plain: bool = False,
    routes: bool = False,
    changes: Sequence[str] = (),
) -> dict[str, Any]:
    """Lay out and draw a pane in JSON: `state` is the unfolding, `positions` those of the boxes, `svg` the elements.

    Without a depth, boxes are unfolded as long as the drawing fits the room, or about a number of boxes, or without a
    room all; with `routes`, only those that lead to boxes with a load; with `changes`, only those that lead to these
    boxes. A `plain` drawing has no signs that fold. Raises `ModgraphError` where V8 cannot start.
    """
    engine = _engine()
    settings = {
        "room": room,
        "isDeep": options.depth is not None,
        "direction": options.direction,
        "without": options.list_left_out(),
        "plain": plain,
        "routes": routes,
        "changes": [*changes],
    }
    engine.eval(f"render({json.dumps(pane)}, {json.dumps(settings)}); 0")
    while engine.eval("proceed()"):
        pass
    result: Any = engine.eval("rendered")
    assert isinstance(result, str), engine.eval("fault")
    drawing: dict[str, Any] = json.loads(result)
    return drawing
