"""The page itself: its frame in HTML, which scripts fill, and its style sheet."""

from __future__ import annotations

from modgraph.inspect.page.document import style_of_drawing
from modgraph.inspect.page.engine import text_of
from modgraph.inspect.quote import escape_html
from modgraph.version import VERSION

# Everything comes from the page's own folder; WebAssembly is compiled, and nothing is evaluated.
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; worker-src 'self' blob:; base-uri 'none'; form-action 'none'"
)

DOCUMENT = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="modgraph {version}">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="page/page.css">
<title>{title}</title>
<script defer src="page/unserved.js"></script>
<script defer src="page/graph.js"></script>
<script type="module" src="page/app.js"></script>
</head>
<body>
<header class="bar">
<h1>{title}</h1>
<p class="status" role="status"></p>
<progress hidden max="1" aria-label="loading the model"></progress>
<span class="space"></span>
<button type="button" data-do="theme" aria-label="switch between light and dark">◐</button>
</header>
<div class="fault" role="alert" hidden></div>
<noscript><p class="fault">This page runs a model in the browser: it needs JavaScript.</p></noscript>
<main>
<section class="inputs" aria-label="inputs"></section>
<section class="outputs" aria-label="outputs"></section>
<section class="routes" aria-label="routing"></section>
<section class="graph pane sourceless" aria-label="graph">
<div class="canvas"><svg xmlns="http://www.w3.org/2000/svg" aria-label="the graph"></svg>
<div class="corner"><button type="button" data-do="in" aria-label="zoom in">+</button>\
<button type="button" data-do="out" aria-label="zoom out">−</button>\
<button type="button" data-do="fit" aria-label="fit the graph" title="fit">⤢</button></div></div>
</section>
</main>
</body>
</html>
"""


def html_of(title: str) -> str:
    """The page of a model."""
    return DOCUMENT.format(policy=escape_html(POLICY), version=VERSION, title=escape_html(title))


def style(own: str) -> str:
    """The style sheet: that of drawings, in the dark too where the system has it so, and the page's own."""
    system = f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme]) {{\n{text_of('dark.css')}}} }}\n"
    return f"{style_of_drawing()}{system}{own}"
