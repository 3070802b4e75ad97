"""The routers of the language: one declaration each, without torch."""

from modgraph.routers.chosen import *
from modgraph.routers.router import *
from modgraph.routers.weighted import *
