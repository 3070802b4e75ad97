"""The torch module of a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.backends.torch.construct import Namespace, construct, resolve
from modgraph.backends.torch.initial import initialise
from modgraph.backends.torch.pool import CompiledPool
from modgraph.backends.torch.run import Step, Values, needed, plan, run
from modgraph.ir import Graph, OpNode, PoolNode, Result, RouteNode, RouterNode, facts_of, weights_of
from modgraph.passes import Lower


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


@dataclass(frozen=True)
class CompiledRoute:
    """How one route is computed. A value without an axis of senders is a `single` sender."""

    form: nn.Module
    pool: CompiledPool
    router: nn.Module
    single: bool

    def __call__(self, tokens: Tensor, *others: Tensor, length: Tensor | None = None) -> Any:
        if self.single:
            tokens = tokens.unsqueeze(-self.pool.rank - 1)
        return self.form(tokens, self.pool, self.router, *others, length=length)


class Model(Namespace):
    """A graph compiled to torch: weights under the graph's names, inputs in its order.

    Called with the model's inputs, batch first, positional or by name, it returns its output, or a dictionary of
    outputs if there are several. The length of a symbolic axis is an optional input `<axis>_length` [B].
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.steps = plan(graph, self._computes())
        self._plans: dict[tuple[Result, ...], list[Step]] = {}

    def _computes(self) -> dict[str, Callable[..., Any]]:
        """Registers the modules of all nodes, and says how each node is computed."""
        graph, made, computes = self.graph, dict[str, Any](), dict[str, Callable[..., Any]]()
        for node in graph:
            match node:
                case OpNode():
                    if node.owner not in made:
                        made[node.owner] = self.put(node.owner, construct(graph.signature(node)))
                    computes[node.name] = made[node.owner]
                case PoolNode():
                    made[node.name] = self.put(node.name, CompiledPool(node))
                case RouteNode():
                    router = graph.router_of(node)
                    if router.name not in made:
                        made[router.name] = self.put(router.name, construct(graph.signature(node)))
                    form = resolve(_form(graph, node, router).route)()
                    pool = made[graph.pool_of(node).name]
                    tokens = graph.type_of(graph.inputs(node.name)["tokens"])
                    single = router.router.senders and len(tokens.shape) == pool.rank
                    computes[node.name] = CompiledRoute(form, pool, made[router.name], single)
        return computes

    def forward(self, *inputs: Tensor, **named: Tensor) -> Tensor | dict[str, Tensor]:
        """The model's output, or its outputs by name if it has several. Raises `TypeError` for wrong inputs."""
        outputs = self.graph.outputs
        values = self._values(self._by_name(inputs, named))
        results = self._run(tuple(outputs.values()), values)
        return results[0] if len(results) == 1 else dict(zip(outputs, results, strict=True))

    def compute(self, batch: Mapping[str, Tensor], losses: bool = True, routing: bool = False) -> Computed:
        """Everything a batch of inputs (and targets, for the losses) gives."""
        wanted: dict[tuple[str, str], Result] = {("outputs", k): v for k, v in self.graph.outputs.items()}
        if losses:
            wanted |= {("losses", name): result for name, result in self.graph.losses.items()}
        if routing:
            wanted |= {("routing", name): result for name, result in self.routing_results().items()}
        results = self.results(batch, tuple(wanted.values()))
        found: dict[str, dict[str, Tensor]] = {"outputs": {}, "losses": {}, "routing": {}}
        for (group, name), value in zip(wanted, results, strict=True):
            found[group][name] = value.mean() if group == "losses" else value
        return Computed(**found)

    def results(self, batch: Mapping[str, Tensor], wanted: tuple[Result, ...]) -> list[Tensor]:
        """Any results of the graph, from a batch of inputs and targets."""
        return self._run(wanted, self._values(dict(batch)))

    def routing_results(self) -> dict[str, Result]:
        """The records that routers keep, by `route.record`."""
        return {
            f"{route.name}.{record}": Result(route.name, index)
            for route in self.graph.of_kind(RouteNode)
            for index, record in enumerate(self.graph.router_of(route).router.records, start=1)
        }

    def _run(self, wanted: tuple[Result, ...], values: Values) -> list[Tensor]:
        if wanted not in self._plans:
            self._plans[wanted] = needed(self.graph, self.steps, wanted)
        return run(self._plans[wanted], values, wanted)

    def _by_name(self, inputs: tuple[Tensor, ...], named: dict[str, Tensor]) -> dict[str, Tensor]:
        names = list(self.graph.input_types)
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
        values: Values = {name: (value,) for name, value in given.items() if name in self.graph}
        for name, type_ in self.graph.input_types.items():
            if name in values:
                continue
            if type_.dtype != "length":
                raise TypeError(f'{self.graph.name} needs the input "{name}": {type_}')
            values[name] = (self._full_length(name.removesuffix("_length"), given),)
        return values

    def _full_length(self, axis: str, given: dict[str, Tensor]) -> Tensor:
        for name, type_ in self.graph.input_types.items():
            if axis in type_.shape and name in given:
                x = given[name]
                return torch.full(x.shape[:1], x.shape[1 + type_.shape.index(axis)], device=x.device)
        raise TypeError(f'{self.graph.name} needs the input "{axis}_length"')


def _form(graph: Graph, route: RouteNode, router: RouterNode) -> Any:
    forms = (*router.router.lowerings(facts_of(graph.pool_of(route))), router.router.reference_form)
    return next(form for form in forms if form.form == route.lowering)


def build(graph: Graph, seed: int = 0, lowering: str | None = None, device: str = "cpu") -> Model:
    """A model with fresh weights. `lowering` asks for one form of all routes."""
    with torch.device("meta"):
        model = Model(Lower(lowering)(graph))
    weights = weights_of(graph)
    assert {weight.name for weight in weights} == set(model.state_dict()), "declared weights are not the module's"
    model.to_empty(device="cpu")
    initialise(model, weights, seed)
    for weight in weights:
        if weight.frozen and not weight.buffer:
            model.get_parameter(weight.name).requires_grad_(False)
    return model.to(device)
