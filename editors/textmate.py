"""The TextMate grammar of the language, from its terminals and vocabulary.

After a change of either: `python editors/textmate.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from modgraph.ops import Op
from modgraph.prelude import blocks
from modgraph.syntax import keywords
from modgraph.vocabulary import list_router_names

PLACE = Path(__file__).parent / "vscode/syntaxes/modgraph.tmLanguage.json"
CONTROL = set("if else for in repeat scan as with until yield when where and or not by over".split())
CONSTANTS = {"true", "false"}
TYPES = {"float", "token", "class"}


def textmate() -> str:
    """Write the grammar as JSON."""
    words = set(keywords())
    scopes = {
        "comment.line.number-sign": r"#.*$",
        "string.quoted.double": r'"(\\.|[^"\\])*"',
        "constant.numeric": r"\b\d+(\.\d+)?([eE][+-]?\d+)?\b",
        "constant.language": _any_of(CONSTANTS),
        "keyword.control": _any_of(words & CONTROL),
        "storage.type": _any_of(words - CONTROL - CONSTANTS),
        "support.type": _any_of(TYPES) + r"(?=\s*(\[|$|\s))",
        "support.function": _any_of([*Op.registry, *blocks()]),
        "support.class": _any_of(list_router_names()),
        "keyword.operator": r"->|\.\.|\*\*|//|[-+*/%=<>!]=?",
    }
    patterns = [{"name": f"{scope}.modgraph", "match": match} for scope, match in scopes.items()]
    grammar = {"scopeName": "source.modgraph", "name": "modgraph", "fileTypes": ["mod"], "patterns": patterns}
    return json.dumps(grammar, indent=2) + "\n"


def _any_of(words: Iterable[str]) -> str:
    return rf"\b({'|'.join(map(re.escape, sorted(words)))})\b"


if __name__ == "__main__":
    PLACE.write_text(textmate(), encoding="utf-8")
