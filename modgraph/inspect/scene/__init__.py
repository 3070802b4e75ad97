"""A graph as nested boxes and edges, from which all drawings are made."""

from modgraph.inspect.scene.build import scene_of
from modgraph.inspect.scene.values import Box, Edge, Scene
