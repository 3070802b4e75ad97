"""A scene as SVG: what the page shows, in its light colours."""

from __future__ import annotations

import re

from modgraph.inspect.page.content import Pane
from modgraph.inspect.page.engine import FIRST_BOXES, rendered, text_of
from modgraph.inspect.scene import Scene
from modgraph.version import VERSION

MARGIN = 4


def svg_of(scene: Scene, budget: int | None = FIRST_BOXES) -> str:
    """The text of an `.svg` file; unfolded are about `budget` boxes, or all but repetitions."""
    drawn = rendered(Pane(scene).as_json(), budget)
    width, height = (round(drawn["laid"][side] + 2 * MARGIN) for side in ("width", "height"))
    about = (
        '<metadata><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"><rdf:Description>'
        f"<dc:title>modgraph {VERSION}</dc:title></rdf:Description></rdf:RDF></metadata>"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="{-MARGIN} {-MARGIN} {width} {height}">{about}<style>{_style()}</style>'
        f'<rect x="{-MARGIN}" y="{-MARGIN}" width="{width}" height="{height}" fill="#ffffff"/>{drawn["svg"]}</svg>\n'
    )


def _style() -> str:
    """The drawing's style sheet with its colours in place of their names, which few viewers know."""
    style = text_of("drawing.css")
    colours: dict[str, str] = dict(re.findall(r"(--[\w-]+): ([^;]+);", style))
    rules = style[style.index("}") + 1 :]
    return re.sub(r"var\((--[\w-]+)\)", lambda name: colours[name[1]], rules)
