"""Pictures of charts: several on one sheet, as a `.png`, `.svg` or `.pdf` file. Needs the extra `pictures`."""

from __future__ import annotations

import io
import json
import re
import textwrap
from collections.abc import Sequence

from modgraph.extras import require
from modgraph.inspect.charts.style import CONFIG, Spec
from modgraph.inspect.page.document import read_colours
from modgraph.inspect.quote import drop_invalid_xml
from modgraph.version import VERSION

PAGE = 1100  # pixels across, about
LETTER = 7.0  # pixels of a letter of a title, at most
SCALE = 1.5  # pixels of a PNG for one of the description
FONT = "Open Sans, DejaVu Sans, sans-serif"  # the first is part of vl-convert
MARGIN = 16
MAKER = f"modgraph {VERSION}"  # marks a picture as written by modgraph
METADATA = (
    '<metadata><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"><rdf:Description><dc:title>{maker}</dc:title></rdf:Description>'
    "</rdf:RDF></metadata>"
)


def arrange(charts: Sequence[tuple[str, float, Spec]], title: str = "") -> list[Spec]:
    """Arrange charts with their titles and widths in rows within a page. The title stands above the first row."""
    rows: list[list[Spec]] = [[]]
    across = 0.0
    for heading, width, chart in charts:
        if rows[-1] and across + width > PAGE:
            rows.append([])
            across = 0.0
        rows[-1].append({**chart, **({"title": wrap(heading, max(width, 180), 11)} if heading else {})})
        across += width
    found: list[Spec] = [{"hconcat": row, "spacing": 28, **_APART} for row in rows]
    return [found[0] | ({"title": wrap(title, PAGE, 13)} if title else {}), *found[1:]]


_SCALES = ("x", "y", "color", "fillOpacity", "strokeWidth")
_APART = {"resolve": {"scale": dict.fromkeys(_SCALES, "independent")}, "align": "none", "bounds": "full"}


def wrap(title: str, width: float, size: int) -> Spec:
    """Write a title in as many lines as it needs."""
    lines = textwrap.wrap(title, max(12, int(width / LETTER * 12 / size)))
    return {"text": lines, "fontSize": size, "offset": 8}


def stack(rows: Sequence[Spec]) -> Spec:
    """Put rows of a sheet below each other."""
    return {"vconcat": list(rows), "spacing": 30, **_APART}


def render(sheet: Spec, suffix: str) -> bytes:
    """Render a sheet on white paper, byte for byte the same each time. Raises `ModgraphError` without the extra."""
    svg = write_svg(sheet)
    if suffix == ".svg":
        return svg.encode()
    import vl_convert

    if suffix == ".pdf":
        return _mark_pdf(vl_convert.svg_to_pdf(svg))
    return _mark_png(vl_convert.svg_to_png(svg, scale=SCALE))


def write_svg(sheet: Spec) -> str:
    """Write a sheet as SVG, in the light colours of pages."""
    require("pictures", "a picture", "write numbers: -o trace.npz")
    import vl_convert

    style = {**CONFIG, "font": FONT, "padding": MARGIN, "background": "white", "aria": False}
    text, colours = json.dumps({**sheet, "config": style}), read_colours()
    spec = json.loads(re.sub(r"var\(--([\w-]+)\)", lambda name: colours[name[1]], text))
    svg = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[], show_warnings=False)
    svg = _number_anew(svg)
    begin = svg.index(">") + 1
    made = METADATA.format(maker=MAKER)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{drop_invalid_xml(svg[:begin] + made + svg[begin:])}\n'


def _number_anew(svg: str) -> str:
    """Number gradients and clips from zero: Vega counts on from picture to picture."""
    ids = {name: f"g{at}" for at, name in enumerate(dict.fromkeys(re.findall(r'id="((?:gradient_|clip)\d+)"', svg)))}
    return re.sub(r'(id="|url\(#)((?:gradient_|clip)\d+)', lambda use: use[1] + ids.get(use[2], use[2]), svg)


def _mark_png(content: bytes) -> bytes:
    """Write a PNG anew: smaller, and with its maker."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    buffer, made = io.BytesIO(), PngInfo()
    made.add_text("Software", MAKER)
    Image.open(io.BytesIO(content)).convert("RGB").save(buffer, "png", pnginfo=made)
    return buffer.getvalue()


def _mark_pdf(content: bytes) -> bytes:
    """Sort the resources of a PDF, whose order varies, and add the maker as a comment at the end."""
    lists = re.compile(rb"(?<=<<\n)(?: +/\w+ \d+ 0 R\n)+")
    content = lists.sub(lambda found: b"".join(sorted(found[0].splitlines(keepends=True))), content)
    return content + f"%/Creator ({MAKER})\n".encode()
