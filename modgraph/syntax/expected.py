"""What could stand where a token cannot, in words."""

from __future__ import annotations

from collections.abc import Set

from modgraph.syntax.tables import language

STATEMENT_KEYWORDS = frozenset(
    "INPUT TARGET TOKENIZER MODULE POOL ROUTER OUTPUT LOSS REPEAT FOR IF SCAN GROW FROZEN YIELD".split()
) | {"CONSTANT", "MOVED", "NEXT", "RECORD", "REQUIRE", "STATE", "WEIGHT"}
DEFINITION_KEYWORDS = frozenset(("MODEL", "BLOCK", "ROUTER", "IMPORT"))
ATOM_START = frozenset("NAME INTEGER DECIMAL STRING LPAR LSQB TRUE FALSE".split())
EXPRESSION_START = ATOM_START | {"MINUS"}
OPERATORS = frozenset("PLUS MINUS STAR SLASH FLOOR PERCENT POWER".split())
GOES_ON = OPERATORS | frozenset(  # what an expression goes on with
    "ARROW BY OVER DOT DOTDOT LPAR LSQB EQUALS UNEQUAL LESS GREATER AT_MOST AT_LEAST AND OR IN NOT".split()
)
BINDING_GOES_ON = frozenset(("COMMA", "EQUAL", "LSQB"))  # after the name that a statement begins with
WORDS = {"NAME": "a name", "INTEGER": "a number", "DECIMAL": "a number", "STRING": "a string", "$END": "the end"}


def expected(accepted: Set[str]) -> str:
    """The tokens that a parser accepts, in words, shortest useful form."""
    phrases: list[str] = []
    rest = frozenset(accepted)
    if rest == BINDING_GOES_ON:
        return '"="'
    for group, phrase in _groups(rest):
        if rest >= group:
            rest -= group
            phrases.append(phrase)
    phrases += sorted({WORDS.get(name) or f'"{literals().get(name, name.lower())}"' for name in rest})
    return phrases[0] if len(phrases) == 1 else ", ".join(phrases[:-1]) + " or " + phrases[-1]


def _groups(accepted: frozenset[str]) -> list[tuple[frozenset[str], str]]:
    """Tokens that are one thing to a reader, and what it is called."""
    between = accepted >= STATEMENT_KEYWORDS
    going_on = accepted & GOES_ON
    if accepted >= ATOM_START:
        begins = EXPRESSION_START if "MINUS" in accepted else ATOM_START
        phrase = "an expression" if "MINUS" in accepted else "an op, a module or a pool"
        return [(begins | (accepted & {"NOT"}), phrase)]
    groups = [
        (STATEMENT_KEYWORDS | {"NAME"}, "a statement"),
        (DEFINITION_KEYWORDS | {"$END"}, "a model, a block or an import"),
    ]
    if "PLUS" in going_on:
        groups.append((going_on, "an operator"))
    elif "ARROW" in going_on:
        groups.append((going_on, "an arrow"))
    return groups if between or going_on else groups[1:]


def literals() -> dict[str, str]:
    """The text of every terminal, by name."""
    return {terminal.name: str(terminal.pattern.value) for terminal in language().terminals}
