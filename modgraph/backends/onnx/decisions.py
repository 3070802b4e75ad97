"""Choices of routers on the examples of a verification, and how close each call was.

A router that chooses among modules records its choice [..., N, M], not zero where token n goes to module m, and may
record the scores by which it ranks modules. Without such scores, and for gates of zeros and ones, ops choose:
thresholds and the k largest. The values that these ops compare show how close the call is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.backends.onnx.examples import Examples, Lengths
from modgraph.backends.torch import Computed, Model
from modgraph.backends.torch.regions import Expert
from modgraph.declare import CHOICES, RANKING
from modgraph.ir import Decision, Graph, OpNode, Padding, Part, Result, RouteNode, list_padding
from modgraph.nn import Arithmetic
from modgraph.nn.padding import apply_mask, valid_along
from modgraph.ops.arithmetic import BROADCAST
from modgraph.ops.choice import Above, TopK
from modgraph.ops.compared import Comparison, Greater, GreaterEqual, Less, LessEqual
from modgraph.ops.ids import TopKIndices
from modgraph.routers import GATHERED, IdChoice
from modgraph.routers.choice import TokenChoice

Batch = dict[str, Tensor]

AXES = {"modules": -1, "senders": -2}
CLOSE = 3e-5  # a gap between scores, by their largest magnitude from 1 on, below which rounding may decide
ROUNDS = 4  # relative number of extra examples that may replace close calls; the rest is compared anyway


def choices_of(graph: Graph) -> dict[str, Decision]:
    """Find the decisions of routers that choose, in scans too, by the full name of the record of their choice."""
    choosing = (each for each in graph.decisions() if each.facts.chooses_along is not None)
    return {f"{each.label}.{name}": each for each in choosing if (name := each.record_as(*CHOICES)) is not None}


class Decisions:
    """The choices of a model's routers on the examples of a verification."""

    def __init__(self, model: Model) -> None:
        self.model, self.replaced = model, 0
        self.choices = choices_of(model.graph)
        self.gates = gate_calls(model.graph)
        self.inside = [  # the routers that choose in nested pools, and the axis of their choice
            (expert.computes[route.name].router, AXES[along])  # type: ignore[attr-defined]
            for expert in (each for each in model.modules() if isinstance(each, Expert))
            for route in expert.region.graph.nodes_of(RouteNode)
            if (along := expert.region.graph.declaration_of(route).chooses_along) is not None
        ]
        self.reached: dict[str, set[int]] = {name: set() for name in model.graph.pools()}
        for each in model.graph.decisions():
            if each.facts.chooses_along is None or _gathers_by_ids(each):
                self.reached[each.pool.name].update(range(each.pool.size))

    def clear_calls(
        self, examples: Examples, size: int, lengths: Lengths, inside: bool = False
    ) -> tuple[Batch, Computed]:
        """Find a batch of examples without close calls, and the model's results for it.

        Examples with close calls are replaced and counted; with `inside`, also those of nested pools.
        """
        batch, used = examples.draw(0, size, lengths), size
        computed = self._compute(batch)
        for _ in range(ROUNDS):
            close = self._close(batch, computed)
            close = close | self.close_inside(batch) if inside else close
            count = int(close.sum())
            if count == 0:
                break
            for name, values in examples.draw(used, count, lengths).items():
                batch[name] = batch[name].clone()
                batch[name][close] = values
            used += count
            self.replaced += count
            computed = self._compute(batch)
        return batch, computed

    def close_inside(self, batch: Batch) -> Tensor:
        """Whether each example has a close call in a nested pool: [B].

        Routes in nested pools keep no records, so each example runs by itself.
        """
        found, gaps = list[Tensor](), list[Tensor]()

        def note_gap(axis: int, module: nn.Module, operands: Any, records: Any) -> None:
            if records.scores.numel():  # else the pool got no message
                gaps.append(gap(records.choice[None], records.scores[None], axis))

        hooks = [router.register_forward_hook(partial(note_gap, axis)) for router, axis in self.inside]
        for at in range(len(next(iter(batch.values())))):
            gaps.clear()
            self._compute({name: value[at : at + 1] for name, value in batch.items()})
            found.append(_smallest(gaps, 1))
        for hook in hooks:
            hook.remove()
        return torch.cat(found) < CLOSE

    def see(self, routing: Mapping[str, Tensor]) -> None:
        """Record the modules that a batch reached."""
        for choice, route in self.choices.items():
            modules = routing[choice].bool().flatten(0, -2).any(0).nonzero().flatten().tolist()
            self.reached[route.pool.name].update(modules)

    def find_unreached(self) -> dict[str, list[int]]:
        """The modules of each pool that no example reached."""
        pools = self.model.graph.pools()
        return {name: sorted(set(range(pool.size)) - self.reached[name]) for name, pool in pools.items()}

    def _compute(self, batch: Batch) -> Computed:
        return self.model.compute(batch, losses=False, routing=True)

    def _close(self, batch: Batch, computed: Computed) -> Tensor:
        routing, gaps = computed.routing, list[Tensor]()
        for choice, each in self.choices.items():
            ranking = each.record_as(*RANKING)
            if ranking is not None:
                axis = AXES[each.facts.chooses_along or "modules"]
                gaps.append(gap(routing[choice], routing[f"{each.label}.{ranking}"], axis))
        compared = tuple(dict.fromkeys(each for call in self.gates for each in call.compared))
        found = dict(zip(compared, self.model.results(batch, compared), strict=True)) if compared else {}
        gaps += [call.gap(tuple(found[each] for each in call.compared), batch) for call in self.gates]
        return _smallest(gaps, len(next(iter(batch.values())))) < CLOSE


def _gathers_by_ids(decision: Decision) -> bool:
    """Whether a route gathers weights by ids, so that one module computes what all compute."""
    node, graph = decision.node, decision.part.graph
    gathers = isinstance(node, RouteNode) and node.lowering == GATHERED
    return gathers and isinstance(graph.router_of(node).router, IdChoice)


def gap(choice: Tensor, scores: Tensor, axis: int = -1) -> Tensor:
    """The gap between the least chosen score and the largest other one along an axis, for each example, divided by the
    largest magnitude of finite scores if that is above 1: rounding grows with it.

    Choice and scores [B, ..., N, M] give [B]. Tokens whose scores are zero are padding.
    """
    choice = choice.bool()
    excluded = choice | (scores == 0) if axis == AXES["senders"] else choice
    least = scores.masked_fill(~choice, torch.inf).amin(axis)
    other = scores.masked_fill(excluded, -torch.inf).amax(axis)
    scale = scores.abs().masked_fill(~scores.isfinite(), 0).amax().clamp(min=1)
    return ((least - other) / scale).flatten(1).amin(1)


def _smallest(gaps: Iterable[Tensor], size: int) -> Tensor:
    """The smallest gap of each example over all routes: [B]."""
    return torch.stack([torch.full((size,), torch.inf), *gaps]).amin(0)


# ------------------------------------------------------------ ops that choose


@dataclass(frozen=True)
class GateCall:
    """An op that chooses among the values `compared`: by a threshold, by the k largest, or by a comparison of two.

    `along` is the axis of the choice, counted from the last. `margin` computes the difference of both sides. `padding`
    lists the padded axes, counted from 1, with the inputs of their lengths.
    """

    compared: tuple[Result, ...]
    op: Above | TopK | TopKIndices | Comparison
    along: int
    padding: Padding
    margin: Arithmetic

    def gap(self, values: tuple[Tensor, ...], inputs: Mapping[str, Tensor]) -> Tensor:
        """The margin of the closest call of each example: [B] from [B, ...]."""
        if isinstance(self.op, TopK | TopKIndices):
            largest = values[0].movedim(self.along, -1).topk(self.op.k + 1).values
            gaps = (largest[..., -2] - largest[..., -1]).unsqueeze(-1).movedim(-1, self.along)
        else:
            gaps = self.margin(*values).abs()
        mask = valid_along(gaps, {axis: inputs[name] for axis, name in self.padding if name in inputs})
        return apply_mask(gaps, mask, torch.inf).flatten(1).amin(1)


def gate_calls(graph: Graph) -> list[GateCall]:
    """The gate calls of a graph, without those in scans."""
    bodies = tuple(f"{each.name}." for each in Part(graph).decisions() if each.facts.chooses_along is None)
    nodes = {node.name: node for node in graph.nodes_of(OpNode) if node.name.startswith(bodies)}
    nodes = {name: node for name, node in nodes.items() if isinstance(node.op, Above | TopK)}
    for route in graph.nodes_of(RouteNode):
        if isinstance(graph.declaration_of(route), TokenChoice):
            nodes |= {node.name: node for node in _find_choosing(route, graph)}
        if isinstance(graph.declaration_of(route), IdChoice):
            sources = map(graph.__getitem__, graph.ancestors([graph.inputs(route.name)["ids"].node]))
            nodes |= {
                node.name: node for node in sources if isinstance(node, OpNode) and isinstance(node.op, TopKIndices)
            }
    return [found for node in nodes.values() if (found := _call(graph, node)) is not None]


def _find_choosing(route: RouteNode, graph: Graph) -> Iterator[OpNode]:
    """The ops that compute the choice of a route; only thresholds and comparisons if the route has scores."""
    inputs = graph.inputs(route.name)
    kinds = Above | TopK | Comparison if inputs["scores"] == inputs["choice"] else Above | Comparison
    pending = [inputs["choice"]]
    for result in pending:
        node = graph[result.node]
        if not isinstance(node, OpNode):
            continue
        before = [*graph.inputs(node.name).values()]
        if isinstance(node.op, kinds):
            yield node
        follows = node.op.propagate is not None or bool(node.op.zero_with())
        if isinstance(node.op, Comparison):
            follows = any(_is_exact(each, graph) for each in before)
        if follows:
            as_is = {before[at] for at in node.op.taken_as_is if at < len(before)}
            pending += [each for each in dict.fromkeys(before) if each not in {*as_is, *pending}]


def _call(graph: Graph, node: OpNode) -> GateCall | None:
    op, signature, type_ = node.op, graph.signature(node), node.types[0]
    compared, padding = tuple(graph.inputs(node.name).values()), list_padding(graph, node.types[0])
    if isinstance(op, Comparison):
        measured = isinstance(op, Less | LessEqual | Greater | GreaterEqual)
        if not measured or type_.per == "batch" or any(_is_exact(each, graph) for each in compared):
            return None
        broadcast: Any = {name: signature.axes[name] for name in BROADCAST[1:]}
        return GateCall(compared, op, -1, padding, Arithmetic("-", right=op.right, **broadcast))
    assert isinstance(op, Above | TopK | TopKIndices)
    place = signature.axes["position"] if isinstance(op, TopKIndices) else op.choice_bound(signature).place
    size = signature.operands[0].shape[place].size if place is not None else None
    if place is None or (isinstance(op, TopK | TopKIndices) and (size is None or op.k >= size)):
        return None
    threshold = op.threshold if isinstance(op, Above) else 0.0
    return GateCall(compared, op, place, padding, Arithmetic("-", right=threshold))


def _is_exact(result: Result, graph: Graph) -> bool:
    """Whether a value has only whole numbers: a choice, or ranks."""
    node = graph[result.node]
    if not isinstance(node, OpNode):
        return False
    signature = graph.signature(node)
    return node.op.choice_bound(signature) is not None or node.op.ranking(signature) is not None
