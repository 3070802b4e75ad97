"""The words of the language and of printed graphs by kind, as editors colour them."""

from __future__ import annotations

from modgraph.ir.text.parse import grammar
from modgraph.ops import Op
from modgraph.prelude import blocks
from modgraph.syntax import keywords
from modgraph.vocabulary import list_router_names

CONTROL = frozenset("if else for in repeat scan as with until yield when where and or not by over".split())
CONSTANTS = frozenset(("true", "false"))
TYPES = frozenset(("float", "token", "class"))


def list_words() -> dict[str, list[str]]:
    """List the words of each kind. `graph` has those that only a printed graph has."""
    words = set(keywords())
    printed = {str(each.pattern.value) for each in grammar().terminals if each.pattern.type == "str"}
    kinds = {
        "constant": CONSTANTS,
        "control": words & CONTROL,
        "declaration": words - CONTROL - CONSTANTS,
        "type": TYPES,
        "op": {*Op.registry, *blocks()},
        "router": set(list_router_names()),
        "graph": {word for word in printed if word.isalpha()} - words,
    }
    return {kind: sorted(each) for kind, each in kinds.items()}
