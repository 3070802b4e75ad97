"""Loads the parser of the language from prebuilt tables.

Building the parser from the grammar takes 0.15 s; loading `modgraph_grammar/tables.json` takes a tenth of that. The
tables record their grammar and version of Lark. If either has changed, the parser is built from the grammar.
After a change of the grammar, run `python -m modgraph.syntax.tables`.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib import resources
from typing import Any

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

from modgraph.syntax.build import Builder

HOME = resources.files("modgraph_grammar")


@cache
def load_language() -> Lark:
    """Return the parser of the language, created once per process."""
    grammar = (HOME / "modgraph.lark").read_text(encoding="utf-8")
    record = json.loads(
        (HOME / "tables.json").read_text(encoding="utf-8"),
        object_hook=lambda each: {int(key) if key.isdigit() else key: value for key, value in each.items()},
    )
    if record["made_from"] != fingerprint(grammar):
        return build(grammar)
    load: Any = Lark._load_from_dict
    parser: Lark = load(record["data"], record["memo"], transformer=Builder())
    return parser


def literals() -> dict[str, str]:
    """Return the text of every terminal by name."""
    return {terminal.name: str(terminal.pattern.value) for terminal in load_language().terminals}


def build(grammar: str, strict: bool = False) -> Lark:
    """Build the parser from the text of the grammar; `strict` raises on any conflict (and needs `interegular`)."""
    builder: Any = Builder()
    return Lark(grammar, parser="lalr", lexer="basic", keep_all_tokens=True, transformer=builder, strict=strict)


def fingerprint(grammar: str) -> dict[str, str]:
    """Identify the grammar and the version of Lark that the tables depend on."""
    return {"grammar": hashlib.sha256(grammar.encode()).hexdigest(), "lark": lark.__version__}


def make_tables(grammar: str) -> str:
    """Return the text of `tables.json` for a grammar."""
    data, memo = build(grammar).memo_serialize([TerminalDef, Rule])
    data["options"]["transformer"] = None
    record = {"made_from": fingerprint(grammar), "data": data, "memo": memo}
    return json.dumps(record, separators=(",", ":"), sort_keys=True) + "\n"


if __name__ == "__main__":
    from pathlib import Path

    home = Path(str(HOME))
    text = make_tables((home / "modgraph.lark").read_text(encoding="utf-8"))
    (home / "tables.json").write_text(text, encoding="utf-8")
