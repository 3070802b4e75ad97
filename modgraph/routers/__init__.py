"""The routers of the language: one declaration each, without torch."""

from modgraph.routers import (
    chosen,
    every_module,
    weighted,
)
from modgraph.routers.choice_forms import GATHERED, MASKED
from modgraph.routers.router import DEFINITION, Lowering, PoolFacts, PoolTypes, Router
from modgraph.routers.text import RouterFacts, RouterText

__all__ = [
    "DEFINITION",
    "GATHERED",
    "MASKED",
    "Lowering",
    "PoolFacts",
    "PoolTypes",
    "Router",
    "RouterFacts",
    "RouterText",
    "chosen",
    "every_module",
    "weighted",
]
