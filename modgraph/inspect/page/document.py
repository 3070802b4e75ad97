"""One HTML file with all that it needs, which reaches for nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from modgraph.inspect.page.content import Section
from modgraph.inspect.page.engine import ELK_NOTICE, elk, packed_elk, rendered, text_of
from modgraph.inspect.page.pane import Pane
from modgraph.inspect.quote import escape_html, script_json
from modgraph.version import VERSION

SCRIPTS = (
    "scene.js",
    "layout.js",
    "draw.js",
    "dom.js",
    "zoom.js",
    "source.js",
    "panel.js",
    "pane.js",
    "charts.js",
    "app.js",
)

PAGE = """<!DOCTYPE html>
<html lang="en" data-theme="light">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="modgraph {version}">
<title>{title}</title>
<style>{style}</style>
</head>
<body data-tab="graph" class="{count}">
<header class="bar">
<h1>{title}</h1>
<div class="search" role="search"><input type="search" placeholder="Search  /" aria-label="search nodes">
<output></output></div>
<span class="space"></span>
<button type="button" data-do="fold">Fold all</button><button type="button" data-do="unfold">Unfold all</button>
<button type="button" data-do="theme" aria-label="switch between light and dark">◐</button>
</header>
<nav class="tabs{wide}" role="tablist">{tabs}</nav>
<main><div class="panes">{panes}</div><aside class="panel" aria-label="details" aria-live="polite"></aside></main>
<div class="charts"></div>
<script type="application/json" id="data">{data}</script>
<!-- {notice} -->
<script type="text/plain" id="elk">{elk}</script>
<script>{script}</script>
</body>
</html>
"""

PANE = """<section class="pane{sourceless}">{heading}<div class="canvas"><svg xmlns="http://www.w3.org/2000/svg" \
aria-label="the graph">{svg}</svg>{legend}<div class="corner">
<button type="button" data-do="in" aria-label="zoom in">+</button><button type="button" data-do="out" \
aria-label="zoom out">−</button><button type="button" data-do="fit" aria-label="fit" title="fit (f)">⤢</button>\
</div></div></section>"""


def page_of(title: str, panes: Sequence[Pane], sections: Sequence[Section] = ()) -> str:
    """The page: one graph with its source, or two side by side; sections stand in a tab of their own."""
    data = [pane.as_json() for pane in panes]
    drawings = [rendered(each) for each in data]
    for each, drawn in zip(data, drawings, strict=True):
        each |= {"state": drawn["state"], "laid": drawn["laid"]}
    script, style = "(() => {\n" + "\n".join(map(text_of, SCRIPTS)) + "})();\n", style_of_page()
    return PAGE.format(
        policy=escape_html(_policy(script, style)),
        version=VERSION,
        title=escape_html(title),
        style=style,
        count="two" if len(panes) > 1 else "one",
        wide=" wide" if sections else "",
        tabs=_tabs(bool(sections)),
        panes="".join(
            _pane(pane, drawn["svg"], at) for at, (pane, drawn) in enumerate(zip(panes, drawings, strict=True))
        ),
        data=script_json({"panes": data, "sections": [section.as_json() for section in sections]}),
        elk=base64.b64encode(packed_elk()).decode(),
        notice=ELK_NOTICE,
        script=script,
    )


def style_of_page() -> str:
    """The style sheet: the drawing's, the page's."""
    return f"{style_of_drawing()}{text_of('page.css')}"


def style_of_drawing() -> str:
    """The style of a drawing in light, and the same in the colours of the dark where these are chosen."""
    return f'{text_of("drawing.css")}:root[data-theme="dark"] {{ color-scheme: dark;\n{text_of("dark.css")}}}\n'


def _policy(script: str, style: str) -> str:
    """Nothing is fetched, and nothing runs but the page's own script and the layout library."""
    scripts = " ".join(_hash(text) for text in (script, elk()))
    own = f"script-src {scripts}; style-src {_hash(style)}; img-src data:"
    return f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _pane(pane: Pane, svg: str, at: int) -> str:
    heading = f"<h2>{escape_html(pane.label)}</h2>" if pane.label else ""
    sourceless = "" if pane.sources() else " sourceless"
    return PANE.format(sourceless=sourceless, heading=heading, svg=svg, legend=LEGEND if at == 0 else "")


def _tabs(with_charts: bool) -> str:
    names = [("graph", "Graph", ""), ("spec", "Spec", "only-narrow"), ("details", "Details", "only-narrow")]
    names += [("charts", "Data", "")] if with_charts else []
    return "".join(
        f'<button type="button" role="tab" class="{kind}" data-do="tab" data-tab="{name}">{text}</button>'
        for name, text, kind in names
    )


def _legend() -> str:
    kinds = (
        "input",
        "target",
        "tokenizer",
        "op",
        "block",
        "pool",
        "router",
        "route",
        "scan",
        "repeat",
        "output",
        "loss",
    )
    items = "".join(f'<li><svg class="drawing" aria-hidden="true">{_sample(kind)}</svg>{kind}</li>' for kind in kinds)
    return f'<details class="legend"><summary>Legend</summary><ul>{items}</ul></details>'


def _sample(kind: str) -> str:
    if kind == "router":
        return '<g class="kind-router"><polygon class="frame" points="7,1 23,1 29,8 23,15 7,15 1,8"/></g>'
    corner = {"input": 7, "output": 7, "target": 7, "route": 6}.get(kind, 2)
    stripe = '<rect class="stripe" x="1" y="3" width="3" height="9"/>' if kind in ("tokenizer", "pool", "scan") else ""
    frame = f'<rect class="frame" x="1" y="1" width="26" height="13" rx="{corner}"/>'
    return f'<g class="kind-{kind}{" open" if kind == "block" else ""}">{frame}{stripe}</g>'


LEGEND = _legend()
