"""The torch module of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from modgraph.backends.torch.construct import Namespace
from modgraph.backends.torch.initial import initialise
from modgraph.backends.torch.labelled import labelled_examples, labels_of_losses, mean_of_loss
from modgraph.backends.torch.memory import refuse_beyond_memory
from modgraph.backends.torch.nodes import Nodes
from modgraph.backends.torch.padding import refilled
from modgraph.backends.torch.plan import Plan, needed
from modgraph.backends.torch.run import Step, Values
from modgraph.ir import Graph, Part, Result, free_draws, padding_of, told, weights_of
from modgraph.passes import Lower, reassociated


@dataclass(frozen=True)
class Computed:
    """What one batch gave: outputs by name, losses by name (each one number), routing records by `route.record`."""

    outputs: dict[str, Tensor]
    losses: dict[str, Tensor]
    routing: dict[str, Tensor]

    @property
    def loss(self) -> Tensor:
        """The sum of the declared losses."""
        return torch.stack(list(self.losses.values())).sum()


class Model(Namespace):
    """A graph compiled to torch: weights under the graph's names, inputs in its order.

    Called with the model's inputs, batch first, positional or by name, it returns its output, or a dictionary of
    outputs if there are several. How long each example is along an axis of any length is an optional input, by default
    called `<axis>_length`, [B].
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self._computed = reassociated(graph)
        self._plans: dict[tuple[Result, ...], Plan] = {}
        self._told = {told(draw.name) for part in graph.parts() for draw in free_draws(part.graph)}
        self._inputs, self._targets = graph.input_types, graph.target_types  # a traced call looks into no graph
        self._groups = {"outputs": graph.outputs, "losses": graph.losses, "routing": graph.records()}
        self._padded = _padded_inputs(graph)
        self._labels = labels_of_losses(graph)
        self.steps: list[Step] = []
        self.steps.extend(Nodes(self).steps(Part(self._computed)))
        self.prepare(tuple(graph.outputs.values()))
        self.prepare((*graph.outputs.values(), *graph.losses.values()))

    def forward(self, *inputs: Tensor, **named: Tensor) -> Tensor | dict[str, Tensor]:
        """The model's output, or its outputs by name if it has several. Raises `TypeError` for wrong inputs."""
        outputs = self._groups["outputs"]
        values = self._values(self._by_name(inputs, named))
        results = self._run(tuple(outputs.values()), values)
        return results[0] if len(results) == 1 else dict(zip(outputs, results, strict=True))

    def compute(self, batch: Mapping[str, Tensor], losses: bool = True, routing: bool = False) -> Computed:
        """Everything a batch of inputs (and targets, for the losses) gives; it may tell draws what to take."""
        asked = ("outputs", *(["losses"] if losses else []), *(["routing"] if routing else []))
        wanted = {(group, name): result for group in asked for name, result in self._groups[group].items()}
        results = self.results(batch, tuple(wanted.values()))
        found: dict[str, dict[str, Tensor]] = {"outputs": {}, "losses": {}, "routing": {}}
        for (group, name), value in zip(wanted, results, strict=True):
            found[group][name] = value
        here = labelled_examples(self._labels, batch) if losses else {}
        means = {name: mean_of_loss(value, here.get(name)) for name, value in found["losses"].items()}
        return Computed(**{**found, "losses": means})

    def results(self, batch: Mapping[str, Tensor], wanted: tuple[Result, ...]) -> list[Tensor]:
        """Any results of the graph, from a batch of inputs and targets."""
        return self._run(wanted, self._values(dict(batch)))

    def routing_results(self) -> dict[str, Result]:
        """The records that routers keep, by `route.record`; of a route in a scan, [time, …]."""
        return self._groups["routing"]

    def prepare(self, wanted: tuple[Result, ...]) -> None:
        """Find what has to be computed for some results, if that is not known: else the first call does it."""
        if wanted not in self._plans:
            self._plans[wanted] = needed(self.steps, wanted)

    def _run(self, wanted: tuple[Result, ...], values: Values) -> list[Tensor]:
        self.prepare(wanted)
        return self._plans[wanted].run(values)

    def _by_name(self, inputs: tuple[Tensor, ...], named: dict[str, Tensor]) -> dict[str, Tensor]:
        names = list(self._inputs)
        if len(inputs) > len(names):
            raise TypeError(f"{self.graph.name} takes {len(names)} inputs ({', '.join(names)}), not {len(inputs)}")
        given = dict(zip(names, inputs, strict=False))
        for name, value in named.items():
            if name not in names or name in given:
                raise TypeError(f'{self.graph.name} has no input "{name}" left; its inputs: {", ".join(names)}')
            given[name] = value
        return given

    def _values(self, given: dict[str, Tensor]) -> Values:
        """Values of inputs and targets; lengths that are not given are those of full examples."""
        known = (self._inputs, self._targets, self._told)
        values: Values = {name: (each,) for name, each in given.items() if any(name in names for names in known)}
        for name, type_ in self._inputs.items():
            if name in values:
                continue
            if type_.dtype != "length":
                raise TypeError(f'{self.graph.name} needs the input "{name}": {type_}')
            values[name] = (self._full_length(name, type_.of, given),)
        return values | self._refilled(given) if self.training else values

    def _full_length(self, name: str, axis: str, given: dict[str, Tensor]) -> Tensor:
        for source, type_ in self._inputs.items():
            at = type_.position(axis)
            if at is not None and source in given:
                x = given[source]
                return torch.full(x.shape[:1], x.shape[1 + at], device=x.device)
        raise TypeError(f'{self.graph.name} needs the input "{name}"')

    def _refilled(self, given: dict[str, Tensor]) -> Values:
        """The inputs that have padding, as they are to be learnt from."""
        found: Values = {}
        for name, axis, length in self._padded:
            if length in given:
                (x,) = found.get(name, (given[name],))
                found[name] = (refilled(x, axis, given[length]),)
        return found


def _padded_inputs(graph: Graph) -> list[tuple[str, int, str]]:
    """The inputs [B, ...] that hold padding, an axis of each, from 1, and the input that tells its lengths."""
    return [(name, *each) for name, type_ in graph.input_types.items() for each in padding_of(graph, type_)]


def build(graph: Graph, seed: int = 0, lowering: str | None = None, device: str = "cpu") -> Model:
    """A model with fresh weights. `lowering` asks for one form of all routes that may have it.

    Raises `ModgraphError` where memory does not hold them.
    """
    refuse_beyond_memory(graph)
    with torch.device("meta"):
        model = Model(Lower(lowering)(graph))
    weights = weights_of(graph)
    assert {weight.name for weight in weights} == set(model.state_dict()), "declared weights are not the module's"
    empty = {name: torch.empty(each.shape, dtype=each.dtype) for name, each in model.state_dict().items()}
    model.load_state_dict(empty, assign=True)  # `to_empty` imports sympy, which takes half as long as torch
    initialise(model, weights, seed)
    for weight in weights:
        if weight.frozen and not weight.buffer:
            model.at(weight.name).requires_grad_(False)
    return model.to(device)
