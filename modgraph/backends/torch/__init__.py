"""Compiles a graph to a torch module."""

from modgraph.backends.torch.initial import make_generator
from modgraph.backends.torch.model import Computed, Model, build
from modgraph.backends.torch.run import CompiledRoute
