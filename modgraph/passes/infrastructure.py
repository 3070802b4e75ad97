"""What a pass is: a frozen value whose fields are its options, called on a graph to give another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from modgraph.ir import Graph


class Pass(ABC):
    """A pure function from graph to graph. Applied to what it gave, it changes nothing."""

    name: ClassVar[str]

    @abstractmethod
    def __call__(self, graph: Graph) -> Graph: ...

    @abstractmethod
    def ensures(self, graph: Graph) -> bool:
        """Whether a graph is as this pass leaves every graph."""
