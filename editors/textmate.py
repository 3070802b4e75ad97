"""The TextMate grammar of the language, from its terminals and vocabulary.

After a change of either: `python editors/textmate.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from modgraph.inspect.words import list_words

PLACE = Path(__file__).parent / "vscode/syntaxes/modgraph.tmLanguage.json"


def textmate() -> str:
    """Write the grammar as JSON."""
    words = list_words()
    scopes = {
        "comment.line.number-sign": r"#.*$",
        "string.quoted.double": r'"(\\.|[^"\\])*"',
        "constant.numeric": r"\b\d+(\.\d+)?([eE][+-]?\d+)?\b",
        "constant.language": _any_of(words["constant"]),
        "keyword.control": _any_of(words["control"]),
        "storage.type": _any_of(words["declaration"]),
        "support.type": _any_of(words["type"]) + r"(?=\s*(\[|$|\s))",
        "support.function": _any_of(words["op"]),
        "support.class": _any_of(words["router"]),
        "keyword.operator": r"->|\.\.|\*\*|//|[-+*/%=<>!]=?",
    }
    patterns = [{"name": f"{scope}.modgraph", "match": match} for scope, match in scopes.items()]
    grammar = {"scopeName": "source.modgraph", "name": "modgraph", "fileTypes": ["mod"], "patterns": patterns}
    return json.dumps(grammar, indent=2) + "\n"


def _any_of(words: Iterable[str]) -> str:
    return rf"\b({'|'.join(map(re.escape, sorted(words)))})\b"


if __name__ == "__main__":
    PLACE.write_text(textmate(), encoding="utf-8")
