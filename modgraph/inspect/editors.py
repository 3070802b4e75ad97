"""The TextMate grammar of the language, from its terminals and vocabulary.

After a change of either: `python -m modgraph.inspect.editors`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from modgraph.ops import Op
from modgraph.syntax import keywords
from modgraph.vocabulary import router_names

PLACE = Path("editors/vscode/syntaxes/modgraph.tmLanguage.json")  # in a checkout
CONTROL = (
    "if",
    "else",
    "for",
    "in",
    "repeat",
    "scan",
    "as",
    "with",
    "yield",
    "when",
    "where",
    "and",
    "or",
    "not",
    "by",
    "over",
)
CONSTANTS = ("true", "false")
TYPES = ("float", "token", "class")


def textmate() -> str:
    """The grammar as JSON: what editors colour a spec by."""
    words = set(keywords())
    declaring = words - set(CONTROL) - set(CONSTANTS)
    patterns = [
        _pattern("comment.line.number-sign", r"#.*$"),
        _pattern("string.quoted.double", r'"(\\.|[^"\\])*"'),
        _pattern("constant.numeric", r"\b\d+(\.\d+)?([eE][+-]?\d+)?\b"),
        _pattern("constant.language", _any_of(CONSTANTS)),
        _pattern("keyword.control", _any_of(words & set(CONTROL))),
        _pattern("storage.type", _any_of(declaring)),
        _pattern("support.type", _any_of(TYPES) + r"(?=\s*(\[|$|\s))"),
        _pattern("support.function", _any_of(Op.registry)),
        _pattern("support.class", _any_of(router_names())),
        _pattern("keyword.operator", r"->|\.\.|\*\*|//|[-+*/%=<>!]=?"),
    ]
    grammar = {"scopeName": "source.modgraph", "name": "modgraph", "fileTypes": ["mod"], "patterns": patterns}
    return json.dumps(grammar, indent=2) + "\n"


def _pattern(scope: str, match: str) -> dict[str, Any]:
    return {"name": f"{scope}.modgraph", "match": match}


def _any_of(words: Iterable[str]) -> str:
    return rf"\b({'|'.join(map(re.escape, sorted(words)))})\b"


if __name__ == "__main__":
    PLACE.write_text(textmate(), encoding="utf-8")
