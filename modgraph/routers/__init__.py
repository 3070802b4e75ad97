"""The routers of the language: one declaration each, without torch."""

from modgraph.routers import agreement
from modgraph.routers.router import Lowering, PoolFacts, Router

__all__ = ["Lowering", "PoolFacts", "Router", "agreement"]
