"""What each of several processes of a training holds and sends, without torch.

Bytes that are sent are those of a ring: of n processes each sends (n - 1) / n of what it sums or gathers. A choice is
taken to spread tokens evenly over the processes. Routes that sum tokens before affine modules send less than this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass

from modgraph.declare import product
from modgraph.inspect.cost import TrainingStep, bind_route, fix_lengths, is_first_to_send
from modgraph.ir import Graph, GraphWeight, RouteNode, ScanNode, weights_of
from modgraph.ir.analysis.division import find_holders, list_divided_pools
from modgraph.ir.node import PoolNode
from modgraph.routers.choice import TokenChoice
from modgraph.routers.weighted import OneModule

FSDP = "fsdp"


@dataclass(frozen=True)
class ProcessCost:
    """Bytes of one process: weights, gradients and state of the optimizer; what all processes exchange for an example,
    forwards and backwards; what a process sends for the weights and gradients of a step."""

    weights: int = 0
    gradients: int = 0
    optimizer: int = 0
    exchanged: int = 0
    synchronised: int = 0

    def __add__(self, other: ProcessCost) -> ProcessCost:
        return ProcessCost(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    def count_step(self, batch: int, processes: int) -> int:
        """What a process sends in a step of a batch, on average."""
        return self.exchanged * batch // processes + self.synchronised


def divide_cost(
    graph: Graph, lengths: Mapping[str, int], processes: int, experts: int, step: TrainingStep, strategy: str
) -> dict[str, ProcessCost]:
    """Count the bytes of the process that holds most, for each pool that groups of `experts` processes divide, and for
    the other weights (""), of which each process has all (ddp) or a part (fsdp)."""
    holders, bytes_each = find_holders(graph, experts), 8 if step.precision == "float64" else 4
    replicas, found = processes // experts, dict[str, ProcessCost]()
    for pool in list_divided_pools(graph, experts):
        prefix = f"{pool.name}."
        members: list[list[GraphWeight]] = [[] for _ in range(experts)]
        for weight in weights_of(graph):
            if weight.name in holders and weight.name.startswith(prefix):
                members[holders[weight.name]].append(weight)
        most = max((_hold(each, bytes_each, step) for each in members), key=lambda cost: cost.weights)
        summed = 2 * most.gradients * (replicas - 1) // replicas
        travels = 2 * bytes_each * (experts - 1) * sum(_list_numbers(graph, pool, lengths, experts)) // experts
        found[pool.name] = ProcessCost(most.weights, most.gradients, most.optimizer, travels, summed)
    rest = _hold([each for each in weights_of(graph) if each.name not in holders], bytes_each, step)
    if strategy == FSDP:  # gathered for the forward and the backward pass; gradients are summed in parts
        step_bytes = (2 * rest.weights + rest.gradients) * (processes - 1) // processes
        rest = ProcessCost(*(-(-each // processes) for each in (rest.weights, rest.gradients, rest.optimizer)))
    else:
        step_bytes = 2 * rest.gradients * (processes - 1) // processes
    return {**found, "": ProcessCost(rest.weights, rest.gradients, rest.optimizer, 0, step_bytes)}


def _hold(weights: list[GraphWeight], bytes_each: int, step: TrainingStep) -> ProcessCost:
    trained = sum(each.count for each in weights if not each.buffer and not each.frozen) * bytes_each
    return ProcessCost(sum(each.count for each in weights) * bytes_each, trained, trained * step.state_per_weight)


def _list_numbers(
    graph: Graph, pool: PoolNode, lengths: Mapping[str, int], experts: int, steps: int = 1
) -> Iterator[int]:
    """Yield the numbers of messages and results for an example at each route through a pool, of which
    (experts - 1) / experts leave a process."""
    for route in graph.nodes_of(RouteNode):
        if graph.pool_of(route).name == pool.name and is_first_to_send(graph, route):
            yield steps * _count_numbers(graph, route, lengths, experts)
    for scan in graph.nodes_of(ScanNode):
        sequence = graph.type_of(graph.inputs(scan.name)[scan.variable])
        rounds = product(fix_lengths(sequence, lengths).shape[:1])
        yield from _list_numbers(scan.region.graph, pool, lengths, experts, steps * rounds)


def _count_numbers(graph: Graph, route: RouteNode, lengths: Mapping[str, int], experts: int) -> int:
    """Count the numbers in messages and results of a route for an example. A message to every module travels once to
    each process."""
    pool, router = graph.pool_of(route), graph.declaration_of(route)
    types, signature = bind_route(graph, route, lengths)
    decisions = product(signature.axes.lead or ())
    message, result = product(types.message.shape), product(types.result.shape)
    if isinstance(router, TokenChoice | OneModule) and not getattr(router, "straight", False):
        return decisions * router.active_messages(signature, pool.size) * (message + result)
    tokens = decisions * int(router.count_tokens(signature))
    if signature.axes.bound.get("rows_") or getattr(router, "rows", False):  # each module gets a row of its own
        return tokens * pool.size * (message + result)
    return tokens * (message * experts + result * pool.size)
