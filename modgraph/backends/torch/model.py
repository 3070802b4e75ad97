"""The torch module of a graph."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from modgraph.backends.torch.batch_types import BatchTypes
from modgraph.backends.torch.construct import Namespace
from modgraph.backends.torch.initial import initialise, refuse_large_weights
from modgraph.backends.torch.labelled import find_labelled, find_labels_of_losses, mean_of_loss
from modgraph.backends.torch.nodes import Nodes
from modgraph.backends.torch.parts import WeightInParts
from modgraph.backends.torch.plan import Steps, plan_for
from modgraph.backends.torch.run import Context, Plan
from modgraph.backends.torch.states import MovedStates, is_recomputation
from modgraph.backends.torch.stored import list_stored
from modgraph.backends.torch.whole_graph import disable_tracing, eager, whole_graph
from modgraph.ir import Graph, GraphWeight, Result, free_draws, list_padding, make_forced_key, weights_of
from modgraph.ir.analysis.division import find_holders
from modgraph.nn import Group
from modgraph.nn.padding import repeat_last
from modgraph.passes import Moved, Store, build_training_passes, optimise


@dataclass(frozen=True)
class Computed:
    """The results of one batch: outputs by name, losses by name (scalars), routing records by `route.record`."""

    outputs: dict[str, Tensor]
    losses: dict[str, Tensor]
    routing: dict[str, Tensor]

    def __repr__(self) -> str:
        def shapes(values: Mapping[str, Tensor]) -> str:
            return ", ".join(f"{name} {[*value.shape]}" for name, value in values.items())

        losses = ", ".join(f"{name} {value.item():.4g}" for name, value in self.losses.items())
        parts = {"outputs": shapes(self.outputs), "losses": losses, "routing": shapes(self.routing)}
        return f"<Computed {'; '.join(f'{name}: {text}' for name, text in parts.items() if text)}>"

    @property
    def loss(self) -> Tensor:
        """The sum of the declared losses."""
        return torch.stack(list(self.losses.values())).sum()


class Model(Namespace):
    """A graph compiled to torch: weights under the graph's names, inputs in its order.

    `graph` is the author's graph, with the weights and the types of inputs and targets. `computed` is the graph after
    passes, with the steps; it keeps the names of weights, outputs, losses, records and draws. `moved` maps results of
    the author's graph to their replacements.

    A call takes inputs, batch first, by position or name. It returns the output, or a dictionary of outputs if there
    are several. The lengths of examples along a padded axis are an optional input [B], by default `<axis>_length`.

    In training, a call computes the next values of states with a rule. The states take them at the next call in
    training, at `eval()` or at `state_dict()`. So results of a state can be differentiated, and a forward pass that
    `torch.utils.checkpoint` repeats updates nothing.

    With a `group`, its processes divide the pools: the model has the modules that this process holds, and all of them
    call it together.
    """

    def __init__(self, graph: Graph, moved: Moved, group: Group | None = None) -> None:
        super().__init__()
        self.group = group
        computed = moved.graph
        self.graph, self.computed, self._moved = graph, computed, moved.results
        self._plans: dict[bool, dict[tuple[Result, ...], tuple[Plan, tuple[str, ...]]]] = {True: {}, False: {}}
        self._forced = {make_forced_key(draw.name) for part in graph.parts() for draw in free_draws(part.graph)}
        self._batch_types = BatchTypes.from_graph(graph, self._forced)
        self.moved_states = MovedStates.from_graph(computed)
        self._pending: dict[str, Tensor] = {}  # values that states take at the next call
        self._inputs, self._targets = graph.input_types, graph.target_types  # a traced call reads no graph
        self._groups = {"outputs": computed.outputs, "losses": computed.losses, "routing": computed.records()}
        types = graph.input_types.items()  # each padded axis of an input [B, ...], and the input with its lengths
        self._padded = [(name, *each) for name, type_ in types for each in list_padding(graph, type_)]
        self._labels = find_labels_of_losses(graph)
        self.in_parts: list[WeightInParts] = []
        self._generators: dict[str, Any] = {}  # by the output with the logits
        self.steps: Steps = ()
        self.steps = Nodes(self, group=group).steps(computed, graph)
        outputs = tuple(computed.outputs.values())
        for ends, given in ((outputs, self._inputs), ((*outputs, *computed.losses.values()), self._targets)):
            self.prepare(ends)
            self.prepare((*ends, *self.moved_states.list_computable([*given]).values()))

    @disable_tracing
    def forward(self, *inputs: Tensor, **named: Tensor) -> Tensor | dict[str, Tensor]:
        """The model's output, or its outputs by name if it has several.

        In training, states move whose rules read no target. Raises `TypeError` and `ValueError` for wrong inputs.
        """
        given, moving = self._begin(self.bind_inputs(inputs, named))
        outputs, moved = self._compute_groups(given, ("outputs",), moving)
        self._keep_pending(moved)
        (found,) = outputs.values()
        return next(iter(found.values())) if len(found) == 1 else found

    @disable_tracing
    def compute(
        self, batch: Mapping[str, Tensor], losses: bool = True, routing: bool = False, moves: bool = True
    ) -> Computed:
        """Compute a batch of inputs, of targets for the losses, and perhaps of forced choices of draws.

        In training, states move, unless `moves` is false. Raises `TypeError` and `ValueError` if the batch does not fit
        the spec's types.
        """
        given, moving = self._begin(batch, moves)
        asked = ("outputs", *(["losses"] if losses else []), *(["routing"] if routing else []))
        found, moved = self._compute_groups(given, asked, moving)
        self._keep_pending(moved)
        return Computed(found["outputs"], found.get("losses", {}), found.get("routing", {}))

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        tokens: int = 64,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        stop: Collection[int] = (),
        output: str = "",
    ) -> list[list[int]]:
        """Continue prompts, lists of ids that may differ in length, by up to so many tokens: the new ids of each.

        A sequence ends before a `stop` token. Temperature 0 takes the most likely token; see `Sampler` for others.
        `Stepwise(model)` is the step function for a sampler of your own. Raises `ModgraphError` if the model is not
        causal or a prompt does not fit, and `ValueError` for settings out of range.
        """
        from modgraph.backends.torch.generation import Generator, generate
        from modgraph.backends.torch.sampling import Sampler

        sampler, known = Sampler(temperature, top_k, top_p, seed), self._generators.get(output)
        if known is None:
            known = self._generators[output] = Generator(self, output)
        else:
            known.step.share_weights(self)  # they may be other tensors by now
        return generate(known, prompts, tokens, sampler, stop)

    def check(self, batch: Mapping[str, Tensor]) -> None:
        """Raise `TypeError` or `ValueError` for a tensor that does not fit the type of its input or target."""
        self._batch_types.check(batch, self)

    @disable_tracing
    def results(self, batch: Mapping[str, Tensor], wanted: tuple[Result, ...]) -> list[Tensor]:
        """Compute any results of the graph from an unchecked batch of inputs and targets; no state moves."""
        return self._results(batch, tuple(self._moved.get(result, result) for result in wanted))

    def routing_results(self) -> dict[str, Result]:
        """Name the records of routers by `route.record`; a route in a scan has records [time, …]."""
        return self._groups["routing"]

    def prepare(self, wanted: tuple[Result, ...]) -> None:
        """Plan the computation of some results now, so that the first call need not."""
        for training, plans in self._plans.items():
            if wanted not in plans:
                plan = plan_for(self.steps, wanted, training)
                plans[wanted] = plan, tuple(result.node for result in plan.arguments)

    # ------------------------------------------------------------ states

    def settle(self) -> None:
        """Assign states the values that the last call in training computed."""
        self.moved_states.move(self, self._pending)
        self._pending = {}

    def train(self, mode: bool = True) -> Self:
        """Set the mode; at the end of training, states take their pending values first."""
        if not mode:
            self.settle()
        return super().train(mode)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """The state dict, after states have taken their pending values."""
        self.settle()
        return super().state_dict(*args, **kwargs)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self.settle()
        super()._load_from_state_dict(*args, **kwargs)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        self.settle()
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    # ------------------------------------------------------------ one call

    @eager
    def _begin(self, batch: Mapping[str, Tensor], moves: bool = True) -> tuple[dict[str, Tensor], dict[str, Result]]:
        """Check the batch; returns it, and the results with the next values of states."""
        self.check(batch)
        if not (self.training and moves and self.moved_states.results):
            return dict(batch), {}
        if not is_recomputation():
            self.settle()
        return dict(batch), self.moved_states.list_computable([*batch])

    @eager
    def _keep_pending(self, moved: Mapping[str, Tensor]) -> None:
        if moved and not is_recomputation():
            self._pending = {name: value.detach() for name, value in moved.items()}

    @whole_graph
    def _compute_groups(
        self, batch: dict[str, Tensor], asked: Sequence[str], moving: Mapping[str, Result]
    ) -> tuple[dict[str, dict[str, Tensor]], dict[str, Tensor]]:
        """Compute the results of some groups by name, losses as means, and the next values of states."""
        wanted = {(group, name): result for group in asked for name, result in self._groups[group].items()}
        results = self._run_plan(batch, (*wanted.values(), *moving.values()))
        found: dict[str, dict[str, Tensor]] = {group: {} for group in asked}
        for (group, name), value in zip(wanted, results, strict=False):
            found[group][name] = value
        if "losses" in found:
            here = find_labelled(self._labels, batch)
            found["losses"] = {name: mean_of_loss(value, here.get(name)) for name, value in found["losses"].items()}
        return found, dict(zip(moving, results[len(wanted) :], strict=True))

    @whole_graph
    def _results(self, batch: Mapping[str, Tensor], wanted: tuple[Result, ...]) -> list[Tensor]:
        return self._run_plan(dict(batch), wanted)

    def _run_plan(self, batch: dict[str, Tensor], wanted: tuple[Result, ...]) -> list[Tensor]:
        self.prepare(wanted)
        plan, reads = self._plans[self.training][wanted]
        values = self._values(batch)
        for name in reads:
            if name not in values:
                of = f'{self.graph.name} needs the target "{name}": {self._targets[name]}'
                raise TypeError(f"{of}; in eval() outputs need none: compute(batch, losses=False)")
        forced = {name: values[name] for name in self._forced if name in values}
        for weight in self.in_parts:
            weight.join()
        found = plan.run([values[name] for name in reads], Context(forced))
        for weight in self.in_parts:
            weight.part()
        return found

    @eager
    def bind_inputs(self, inputs: tuple[Tensor, ...], named: dict[str, Tensor]) -> dict[str, Tensor]:
        names = list(self._inputs)
        if len(inputs) > len(names):
            raise TypeError(f"{self.graph.name} takes {len(names)} inputs ({', '.join(names)}), not {len(inputs)}")
        given = dict(zip(names, inputs, strict=False))
        for name in named:
            if name not in names or name in given:
                raise TypeError(f'{self.graph.name} has no input "{name}" left; its inputs: {", ".join(names)}')
        return given | named

    def _values(self, given: dict[str, Tensor]) -> dict[str, Any]:
        """Collect the values of inputs and targets. Absent lengths, of full examples, are None.

        In training, the padding of inputs repeats the last element.
        """
        known = (self._inputs, self._targets, self._forced)
        values: dict[str, Any] = {
            name: ids(each) for name, each in given.items() if any(name in names for names in known)
        }
        for name, type_ in self._inputs.items():
            if name not in values and type_.dtype == "length":
                having = [each for each, other in self._inputs.items() if other.find_length(type_.of) is not None]
                if not having or any(each in given for each in having):
                    values[name] = None
            if name not in values:
                described = "" if type_.dtype == "length" else f": {type_}"
                raise TypeError(f'{self.graph.name} needs the input "{name}"{described}')
        found: dict[str, Tensor] = {}
        for name, axis, length in self._padded if self.training else ():
            if length in given:
                found[name] = repeat_last(found.get(name, given[name]), axis, given[length])
        return values | found


def ids(x: Tensor) -> Tensor:
    """Convert whole numbers of any width to int64, which torch's ops take."""
    return x if x.is_floating_point() or x.dtype == torch.int64 else x.long()


def build(
    graph: Graph,
    seed: int = 0,
    lowering: str | None = None,
    device: str = "cpu",
    asked: Iterable[Result] = (),
    store: Store | None = None,
    group: Group | None = None,
) -> Model:
    """Build a model with fresh weights.

    `lowering` requests a lowering for all routes that offer it, `store` which pools are stored. `asked` are further
    results for `Model.results`. The processes of a `group` divide the pools. Raises `ModgraphError` if the weights do
    not fit in memory.
    """
    weights = weights_to_hold(graph, group)
    refuse_large_weights(graph, weights)
    model = build_empty_model(graph, lowering, asked=asked, store=store, group=group)
    initialise(model, weights, seed)
    return model.to(device)


class _Unfilled(TorchFunctionMode):
    """Initialisers of torch leave weights as they are. For normal numbers without a device torch imports its compiler,
    which takes as long as torch."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__module__", None) == torch.nn.init.__name__:
            return kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def build_empty_model(
    graph: Graph,
    lowering: str | None = None,
    allocation: AbstractContextManager[object] | None = None,
    asked: Iterable[Result] = (),
    store: Store | None = None,
    group: Group | None = None,
) -> Model:
    """Build a model with uninitialised weights, allocated within the context `allocation`."""
    with torch.device("meta"), _Unfilled():
        model = Model(graph, optimise(graph, build_training_passes(lowering, asked, store)), group)
    weights = weights_to_hold(graph, group)
    assert {weight.name for weight in weights} == set(model.state_dict()), "declared weights are not the module's"
    shapes = model.state_dict()
    with allocation or nullcontext():
        empty = {name: torch.empty(each.shape, dtype=each.dtype) for name, each in shapes.items()}
        model.load_state_dict(empty, assign=True)  # `to_empty` imports sympy, which takes half as long as torch
    stored = {row: each for each in list_stored(model) for row in each.rows}
    for weight in weights:
        if weight.frozen and not weight.buffer:
            tensor = stored[weight.name].weight if weight.name in stored else model.lookup(weight.name)
            tensor.requires_grad_(False)
    return model


def weights_to_hold(graph: Graph, group: Group | None) -> list[GraphWeight]:
    """List the weights that this process holds: all, but for modules of the other processes of a group."""
    holders = {} if group is None else find_holders(graph, group.size)
    return [each for each in weights_of(graph) if group is None or holders.get(each.name, group.place) == group.place]
