"""One HTML file with all that it needs, which reaches for nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from modgraph.inspect.page.content import Pane, Section
from modgraph.inspect.page.engine import ELK_NOTICE, elk, packed_elk, rendered, text_of
from modgraph.inspect.quote import escape_html, script_json
from modgraph.version import VERSION

SCRIPTS = "scene.js layout.js draw.js dom.js zoom.js source.js panel.js pane.js charts.js app.js".split()
KINDS = "input target tokenizer op block pool router route scan repeat output loss".split()

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

TAB = '<button type="button" role="tab" class="{kind}" data-do="tab" data-tab="{name}">{text}</button>'


def page_of(title: str, panes: Sequence[Pane], sections: Sequence[Section] = ()) -> str:
    """The page: one graph with its source, or two side by side; sections stand in a tab of their own."""
    data, drawn = [pane.as_json() for pane in panes], list[str]()
    for pane, record in zip(panes, data, strict=True):
        drawing = rendered(record)
        record |= {"state": drawing["state"], "laid": drawing["laid"]}
        heading = f"<h2>{escape_html(pane.label)}</h2>" if pane.label else ""
        legend, sourceless = "" if drawn else _legend(), "" if pane.sources() else " sourceless"
        drawn.append(PANE.format(sourceless=sourceless, heading=heading, svg=drawing["svg"], legend=legend))
    script = "(() => {\n" + "\n".join(map(text_of, SCRIPTS)) + "})();\n"
    style = style_of_drawing() + text_of("page.css")
    # nothing is fetched, and nothing runs but the page's own script and the layout library
    policy = f"default-src 'none'; script-src {_hash(script)} {_hash(elk())}; style-src {_hash(style)}; "
    policy += "img-src data:; base-uri 'none'; form-action 'none'"
    tabs = [("graph", "Graph", ""), ("spec", "Spec", "only-narrow"), ("details", "Details", "only-narrow")]
    tabs += [("charts", "Data", "")] if sections else []
    return PAGE.format(
        policy=escape_html(policy),
        version=VERSION,
        title=escape_html(title),
        style=style,
        count="two" if len(panes) > 1 else "one",
        wide=" wide" if sections else "",
        tabs="".join(TAB.format(name=name, text=text, kind=kind) for name, text, kind in tabs),
        panes="".join(drawn),
        data=script_json({"panes": data, "sections": [section.as_json() for section in sections]}),
        elk=base64.b64encode(packed_elk()).decode(),
        notice=ELK_NOTICE,
        script=script,
    )


def style_of_drawing() -> str:
    """The style of a drawing in light, and the same in the colours of the dark where these are chosen."""
    return f'{text_of("drawing.css")}:root[data-theme="dark"] {{ color-scheme: dark;\n{text_of("dark.css")}}}\n'


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _legend() -> str:
    items = []
    for kind in KINDS:
        corner = {"input": 7, "output": 7, "target": 7, "route": 6}.get(kind, 2)
        shape = f'<rect class="frame" x="1" y="1" width="26" height="13" rx="{corner}"/>'
        if kind in ("tokenizer", "pool", "scan"):
            shape += '<rect class="stripe" x="1" y="3" width="3" height="9"/>'
        elif kind == "router":
            shape = '<polygon class="frame" points="7,1 23,1 29,8 23,15 7,15 1,8"/>'
        group = f'<g class="kind-{kind}{" open" if kind == "block" else ""}">{shape}</g>'
        items.append(f'<li><svg class="drawing" aria-hidden="true">{group}</svg>{kind}</li>')
    return f'<details class="legend"><summary>Legend</summary><ul>{"".join(items)}</ul></details>'
