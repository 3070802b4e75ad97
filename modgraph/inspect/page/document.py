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
TAB = '<button type="button" role="tab" class="{kind}" data-do="tab" data-tab="{name}">{text}</button>'


def page_of(title: str, panes: Sequence[Pane], sections: Sequence[Section] = ()) -> str:
    """The page: one graph with its source, or two side by side; sections stand in a tab of their own."""
    data, drawn, template = [pane.as_json() for pane in panes], list[str](), text_of("pane.html")
    for pane, record in zip(panes, data, strict=True):
        drawing = rendered(record)
        record |= {"state": drawing["state"], "laid": drawing["laid"]}
        heading = f"<h2>{escape_html(pane.label)}</h2>" if pane.label else ""
        legend, sourceless = "" if drawn else text_of("legend.html"), "" if pane.sources() else " sourceless"
        drawn.append(template.format(sourceless=sourceless, heading=heading, svg=drawing["svg"], legend=legend))
    script = "(() => {\n" + "\n".join(map(text_of, SCRIPTS)) + "})();\n"
    style = style_of_drawing() + text_of("page.css")
    # nothing is fetched, and nothing runs but the page's own script and the layout library
    policy = f"default-src 'none'; script-src {_hash(script)} {_hash(elk())}; style-src {_hash(style)}; "
    policy += "img-src data:; base-uri 'none'; form-action 'none'"
    tabs = [("graph", "Graph", ""), ("spec", "Spec", "only-narrow"), ("details", "Details", "only-narrow")]
    tabs += [("charts", "Data", "")] if sections else []
    return text_of("page.html").format(
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
