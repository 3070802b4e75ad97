"""A graph as nested boxes and edges, for all that draws it."""

from modgraph.inspect.scene.build import scene_of
from modgraph.inspect.scene.values import Box, Edge, Scene
