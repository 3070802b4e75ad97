"""What a pass is: a frozen value whose fields are its options, called on a graph to give another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from modgraph.ir import Graph


class Pass(ABC):
    """A pure function from graph to graph."""

    name: ClassVar[str]

    @abstractmethod
    def __call__(self, graph: Graph) -> Graph: ...
