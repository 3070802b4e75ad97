"""The routers of the language, one declaration each, without torch."""

from modgraph.routers.choice import GATHERED, MASKED
from modgraph.routers.ids import NAMED_MODULES, IdChoice
from modgraph.routers.router import DEFINITION, Lowering, PoolFacts, PoolTypes, Router, RouterFacts, RouterText
from modgraph.routers.weighted import EveryModule, OneModule, Weighted
