"""States with update rules: in training, each call computes the values that they take at the next call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from modgraph.backends.torch.construct import Namespace
from modgraph.ir import Graph, Result, TargetNode, find_module_axes, find_moved_states, weights_of
from modgraph.ir.analysis.learnt import ModuleAxis


@dataclass(frozen=True)
class MovedStates:
    """The next value of each state with a rule, by the name of its weight.

    `targets` are the targets that each rule reads. `new_places` has the axis along which a frozen state has grown: only
    its new places move.
    """

    results: Mapping[str, Result]
    targets: Mapping[str, frozenset[str]]
    new_places: Mapping[str, ModuleAxis]

    @classmethod
    def from_graph(cls, graph: Graph) -> MovedStates:
        """The states of a graph that have rules."""
        results = find_moved_states(graph)
        if not results:
            return cls({}, {}, {})
        targets = {node.name for node in graph.nodes_of(TargetNode)}
        read = {name: frozenset(targets & graph.ancestors([result.node])) for name, result in results.items()}
        frozen = {weight.name for weight in weights_of(graph) if weight.frozen}
        return cls(results, read, {name: of for name, of in find_module_axes(graph).items() if name in frozen})

    def list_computable(self, names: Sequence[str]) -> dict[str, Result]:
        """The states whose rules can be computed from a batch with these names."""
        return {name: result for name, result in self.results.items() if self.targets[name] <= {*names}}

    @torch.no_grad()
    def move(self, model: Namespace, values: Mapping[str, Tensor]) -> None:
        """Assign states their next values; in frozen states, only the new places."""
        for name, value in values.items():
            own, of = model.lookup(name), self.new_places.get(name)
            place = ... if of is None else (*[slice(None)] * of.axis, slice(of.old, None))
            own[place] = value[place]


def is_recomputation() -> bool:
    """Whether a backward pass repeats this forward pass, as with `torch.utils.checkpoint`."""
    return not torch.compiler.is_compiling() and torch._C._current_graph_task_id() != -1
