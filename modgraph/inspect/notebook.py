"""Renders values for a notebook: a heading, tables, text and a picture, as HTML without scripts.

The HTML has less than 300 kB for any value: long tables and texts are cut, and say so.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

from modgraph.extras import find_missing
from modgraph.inspect.quote import escape_html
from modgraph.inspect.scene import Scene

Record = Mapping[str, object]
MOST_ROWS = 60
MOST_LETTERS = 30_000
MOST_OF_PICTURE = 200_000  # bytes, a third less than in the notebook


def render(heading: str, *parts: str) -> str:
    """A value under its heading."""
    return f"<div><p><b>{escape_html(heading)}</b></p>{''.join(parts)}</div>"


def render_table(records: Sequence[Record], title: str = "") -> str:
    """Render records with equal keys as a table, at most the first rows."""
    if not records:
        return ""
    keys = [*dict.fromkeys(key for record in records for key in record)]
    header = "".join(f"<th>{escape_html(key)}</th>" for key in keys)
    rows = [
        "<tr>" + "".join(f"<td>{escape_html(_cell(record.get(key, '')))}</td>" for key in keys) + "</tr>"
        for record in records[:MOST_ROWS]
    ]
    left = len(records) - MOST_ROWS
    more = f"<p>and {left:,} more rows</p>" if left > 0 else ""
    caption = f"<p>{escape_html(title)}</p>" if title else ""
    table = f"<table><thead><tr>{header}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f"{caption}{frame_table(table)}{more}"


def frame_table(table: str) -> str:
    """Put a table into a frame, in which it scrolls sideways where a notebook is narrower."""
    return f'<div style="max-width: 100%; overflow-x: auto">{table}</div>'


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def render_text(text: str) -> str:
    """Render text, at most its beginning."""
    cut = text[:MOST_LETTERS]
    more = f"<p>and {len(text) - len(cut):,} more letters</p>" if len(text) > len(cut) else ""
    return f"<pre>{escape_html(cut)}</pre>{more}"


def render_picture(scene: Scene) -> str:
    """Render the graph as a picture without scripts or links; a line with the reason if that is not possible."""
    if find_missing("visualize"):
        command = "pip install 'modgraph-compiler[visualize]'"
        return f"<p>no picture: V8, which lays it out, is not installed (<code>{command}</code>)</p>"
    from modgraph.inspect.drawing import write_svg

    content = write_svg(scene).encode()
    if len(content) > MOST_OF_PICTURE:
        return "<p>no picture: the graph is too large for a notebook; visualize(PATH) writes a page</p>"
    source = base64.b64encode(content).decode()
    return f'<img alt="{escape_html(scene.name)}" style="max-width: 100%" src="data:image/svg+xml;base64,{source}">'
