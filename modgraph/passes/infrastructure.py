"""What a pass is: a frozen value whose fields are its options, called on a graph to give another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar

from modgraph.ir import SCAN_SLOTS, Graph, Node, Result, ScanNode


class Pass(ABC):
    """A pure function from graph to graph."""

    name: ClassVar[str]

    @abstractmethod
    def __call__(self, graph: Graph) -> Graph: ...


def rebuilt(
    graph: Graph,
    change: Callable[[Node], Node | None] = lambda node: node,
    moved: Mapping[Result, Result] | None = None,
) -> Graph:
    """A copy of a graph with its nodes changed, or left out where `change` gives None.

    `moved` says which results take the place of others; what used a node left out must have been moved.
    """
    copy = Graph(graph.name, graph.parameters)
    for node in graph:
        changed = change(node)
        if changed is not None:
            inputs = {slot: (moved or {}).get(result, result) for slot, result in graph.inputs(node.name).items()}
            copy.add(changed, _kept(inputs, changed), graph.uses(node.name), graph.lengths(node.name))
    return copy


def _kept(inputs: dict[str, Result], node: Node) -> dict[str, Result]:
    """What still flows into a scan whose region may have lost inputs."""
    if not isinstance(node, ScanNode):
        return inputs
    return {slot: result for slot, result in inputs.items() if slot in SCAN_SLOTS or slot in node.region}
