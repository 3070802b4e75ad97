"""Unescapes bars in code of tables, as a hook of mkdocs. GitHub requires the escape, Python-Markdown does not accept
it."""

from __future__ import annotations

import re
from typing import Any


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Unescape bars in code in rows of tables."""
    return re.sub(r"^\|.*$", lambda row: re.sub(r"`[^`]*`", _strip_escapes, row[0]), markdown, flags=re.MULTILINE)


def _strip_escapes(code: re.Match[str]) -> str:
    return code[0].replace(r"\|", "|")
