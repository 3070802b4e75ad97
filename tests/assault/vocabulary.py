"""What generated specs are written with: the words of the language and numbers that are often handled wrongly."""

from __future__ import annotations

from pathlib import Path
from random import Random

from modgraph.elaboration.constants import FUNCTIONS
from modgraph.ops import Op
from modgraph.prelude import blocks, routers
from modgraph.routers import Router
from modgraph.syntax import keywords
from tests.examples import GRU, NOVEL, OP_EXAMPLES, ROUTER_EXAMPLES, ROUTERS_IN_SCAN, SEQUENCE, TRANSFORMER, TWO_SCANS

LARGE = [path.read_text() for path in sorted(Path("specs").glob("*.mod"))] + [
    TRANSFORMER,
    SEQUENCE,
    GRU,
    TWO_SCANS,
    NOVEL,
]
SMALL = [*OP_EXAMPLES.values(), *ROUTER_EXAMPLES.values(), *ROUTERS_IN_SCAN.values()]
SPECS = LARGE + SMALL

OPS = [*Op.registry, *blocks()]
ROUTERS = [*Router.registry, *routers()]
SETTINGS = list(
    dict.fromkeys(name for each in (*Op.registry.values(), *Router.registry.values()) for name in each.settings())
)
KEYWORDS = list(keywords())
SIGNS = "-> .. == != <= >= < > ** // + - * / % = : , . ( ) [ ] { }".split()
NUMBERS = "0 1 2 3 4 5 6 7 8 12 64 100 256 1000 65536 100000 2147483647 2147483648 9007199254740992".split()
DECIMALS = "0.0 0.1 0.5 1.0 1.5 1e3 2.5e-7 1e-300 1e38 1e300".split()
STRINGS = '"" "s" "mean" "sum" "concat" "conv" "linear" "before_top_k" "specs/smn.mod" "\\"" "ü" "{x}"'.split()
RECORDS = "gates scores selected load probabilities weight".split()
FRESH = "a b c d e f g h x y z words image label expert gate i j k n time width True None".split()
WORDS = [*OPS, *ROUTERS, *SETTINGS, *KEYWORDS, *SIGNS, *NUMBERS, *DECIMALS, *STRINGS, *FUNCTIONS, *FRESH]
CHARACTERS = ["", "((", "}", '"', "\\", "\n", "\t", "\r", "\0", "\x1b", "\x85", "\u2028", "\ufeff", "\ud800", "ß", "𝛼"]


def number(rng: Random) -> str:
    """Mostly a small one: specs with large ones are rarely sound."""
    return rng.choice(NUMBERS) if rng.random() < 0.3 else str(rng.randint(0, 8))
