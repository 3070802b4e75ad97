"""Escapes texts in written files: one function for each language, through which every text goes.

Those for Python are in `backends/torch/source/text.py`, for SVG in `page/svg_text.js`, for terminals in
`modgraph_runtime.streams`.
"""

from __future__ import annotations

import html
import json
import re
from typing import Any

UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")
OF_MERMAID = {'"': "quot", "&": "amp", "<": "lt", ">": "gt", "#": "35", "%": "37", "\\": "92", "`": "96"}


def escape_html(text: str) -> str:
    """A text between tags, or in the quotes of an attribute."""
    return html.escape(drop_invalid_xml(text))


def drop_invalid_xml(text: str) -> str:
    """A text without characters that XML does not allow; markup stays."""
    return UNSEEN.sub("\ufffd", text)


def script_json(value: Any) -> str:
    """JSON within `<script>`, without any `<`, so that no element of HTML begins or ends in it."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def quote_dot(text: str) -> str:
    """A text in quotes for graphviz, which decodes HTML entities in them."""
    seen = drop_invalid_xml(text.replace("\r", "\ufffd"))
    escaped = seen.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;").replace("\n", "\\n")
    return f'"{escaped}"'


def quote_mermaid(text: str) -> str:
    """A text in quotes, with Mermaid's entities for characters that end them, begin markup or a directive."""
    seen = drop_invalid_xml(re.sub(r"\s", " ", text))
    marks = "".join(f"#{OF_MERMAID[mark]};" if mark in OF_MERMAID else mark for mark in seen)
    return f'"{marks}"'
