"""Specs grown from the grammar: random derivations, names mostly those that mean something where they stand."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from random import Random
from typing import Any

from modgraph.syntax.tables import load_language
from tests.assault.vocabulary import (
    DECIMALS,
    FRESH,
    FUNCTIONS,
    OPS,
    RECORDS,
    ROUTERS,
    SETTINGS,
    STRINGS,
    number,
)

MOST_WORDS = 120
DECLARING = {"INPUT": "value", "MODULE": "term", "TOKENIZER": "term", "POOL": "term", "ROUTER": "router", "AS": "value"}
DECLARING |= {"REPEAT": "other", "FOR": "value", "BLOCK": "term", "MODEL": "other", "TARGET": "value"}
OPERATORS = frozenset("disjunction conjunction negation comparison range sum product signed power postfix".split())
USUAL = {"start": (0,), "definition": (1, 2), "statement": (2, 3, 4, 5, 5, 5, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)}
USUAL |= {"expression": (0, 1), "type": (3,)}
Production = tuple[Any, ...]


@cache
def productions() -> dict[str, list[Production]]:
    """What each symbol of the grammar can become."""
    found: dict[str, list[Production]] = defaultdict(list)
    for rule in load_language().rules:
        found[str(rule.origin.name)].append(tuple(rule.expansion))
    return dict(found)


@cache
def literals() -> dict[str, str]:
    return {terminal.name: str(terminal.pattern.value) for terminal in load_language().terminals}


@cache
def heights() -> dict[str, int]:
    """How deep the shallowest derivation of each symbol is."""
    found: dict[str, int] = {}
    while len(found) < len(productions()):
        for name, ways in productions().items():
            heights_of_ways = [_height(way, found) for way in ways]
            known = [height for height in heights_of_ways if height is not None]
            if known:
                found[name] = min(known)
    return found


def _height(way: Production, found: dict[str, int]) -> int | None:
    inner = [0 if symbol.is_term else found.get(str(symbol.name)) for symbol in way]
    return None if None in inner else 1 + max((each for each in inner if each is not None), default=0)


@cache
def shortest(symbol: str) -> Production:
    """The way to the shallowest derivation of a symbol."""
    return min(productions()[symbol], key=lambda way: (_height(way, heights()) or 0, len(way)))


def grown(rng: Random) -> str:
    """One derivation of the grammar's start, or of a body inside a model that has some values."""
    derivation = _Derivation(rng)
    if rng.random() < 0.25:
        return derivation.derived("start")
    derivation.names |= {"value": ["x", "words", "xs", "n"], "term": ["p", "e", "b"], "router": ["r"]}
    head = (
        "block b(k=2) { input v: float[6] output v -> linear(k) } model m(n=3, widths=[4, 6]) { input x: float[5, 6] "
    )
    head += "input words: token[time, 9] input xs: float[time, 5, 6] pool p[3] = linear(6) module e = linear(6) "
    head += f"router r = {rng.choice(ROUTERS)} "
    return head + " ".join(derivation.derived("statement") for _ in range(rng.randint(1, 4))) + " output x }"


class _Derivation:
    """Words from left to right. Beyond a number of words or a depth the shallowest way is taken."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.words: list[str] = []
        self.kinds: list[str] = ["", ""]
        self.names: dict[str, list[str]] = {"value": [], "term": [], "router": [], "other": []}

    def derived(self, start: str) -> str:
        self.words = []
        pending: list[tuple[Any, int]] = [(start, 0)]
        while pending:
            symbol, depth = pending.pop()
            if isinstance(symbol, str):
                pending += [(each, depth + 1) for each in reversed(self._way(symbol, depth))]
            elif symbol.is_term:
                self._write(str(symbol.name))
            else:
                pending.append((str(symbol.name), depth))
        return " ".join(self.words)

    def _way(self, symbol: str, depth: int) -> Production:
        if len(self.words) > MOST_WORDS:
            return shortest(symbol)
        if symbol in USUAL and self.rng.random() < 0.8:
            return productions()[symbol][self.rng.choice(USUAL[symbol])]
        if symbol == "atom" and (self.kinds[-1] in ("ARROW", "BY") or self.rng.random() < 0.5):
            return shortest(symbol)
        usual = 1 - 0.2 * 0.95**depth if symbol in OPERATORS else 0.2
        return shortest(symbol) if self.rng.random() < usual else self.rng.choice(productions()[symbol])

    def _write(self, terminal: str) -> None:
        word = self._name() if terminal == "NAME" else self._literal(terminal)
        self.words.append(word)
        self.kinds = [self.kinds[-1], terminal]

    def _literal(self, terminal: str) -> str:
        match terminal:
            case "INTEGER":
                return number(self.rng)
            case "DECIMAL":
                return self.rng.choice(DECIMALS)
            case "STRING":
                return self.rng.choice(STRINGS)
        return literals()[terminal]

    def _name(self) -> str:
        """A name that could stand here, mostly."""
        before_last, last = self.kinds
        if last in DECLARING:
            name = self.rng.choice(FRESH)
            self.names[DECLARING[last]].append(name)
            return name
        known = self._known(before_last, last)
        return self.rng.choice(known) if known and self.rng.random() < 0.9 else self.rng.choice(FRESH)

    def _known(self, before_last: str, last: str) -> list[str]:
        match last:
            case "ARROW":
                return OPS + self.names["term"] * 8
            case "BY":
                return self.names["router"]
            case "COLON":
                return ["float", "float", "token", "class"]
            case "DOT":
                return RECORDS
            case "EQUAL" if before_last == "NAME" and "router" in self.words[-4:]:
                return ROUTERS
            case "EQUAL":
                return self.names["value"] * 4 + OPS + self.names["router"]
            case "LPAR" | "COMMA":
                return self.names["value"] + SETTINGS
        return self.names["value"] * 4 + [*FUNCTIONS, *self.names["router"]]
