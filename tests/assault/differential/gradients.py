"""Gradients by autograd, held against central finite differences of the reference."""

from __future__ import annotations

from collections import Counter

import numpy as np
import torch
from torch import Tensor

from modgraph.ir import RouteNode, flat_to_json
from modgraph.ops.choice import StraightThrough
from modgraph.ops.situation import StopGradient
from tests.assault.coverage import graphs_in
from tests.assault.differential.case import Case, Unlike, in_64_bits, op_nodes
from tests.reference import interpret

STEP = 1e-5
CLOSE = 1e-6
DIRECTIONS = 3


def hold_gradients(case: Case, counts: Counter[str]) -> None:
    """Raises `Unlike` where the derivative of a model's losses and outputs in some direction is another."""
    weights = {name: each for name, each in case.model.state_dict(keep_vars=True).items() if each.requires_grad}
    if not weights or not _is_derivative(case):
        counts["gradients are none, or no derivatives"] += 1
        return
    case.model.zero_grad()
    total = _total(case)
    if not total.requires_grad:
        counts["gradients are none, or no derivatives"] += 1
        return
    total.backward()  # type: ignore[no-untyped-call]
    generator = torch.Generator().manual_seed(5)
    for _ in range(DIRECTIONS):
        along = {name: torch.randn(each.shape, generator=generator, dtype=each.dtype) for name, each in weights.items()}
        expected, finer = _difference(case, along, STEP), _difference(case, along, STEP / 4)
        found = sum(float((weights[n].grad * along[n]).sum()) for n in along if weights[n].grad is not None)  # type: ignore[operator]
        scale = max(1.0, abs(expected), abs(float(total.detach())))
        if abs(expected - finer) > CLOSE * scale / 4:
            counts["kinks"] += 1
        elif abs(found - expected) > CLOSE * scale:
            raise Unlike("reference and gradients", f"{found} by autograd, {expected} by differences")
        else:
            counts["gradients"] += 1


def _is_derivative(case: Case) -> bool:
    """Whether gradients are those of the values, everywhere: none is stopped or sent elsewhere."""
    routes = (graph.router_of(route).router for graph in graphs_in(case.graph) for route in graph.nodes_of(RouteNode))
    stopped = any(isinstance(node.op, StopGradient | StraightThrough) for node in op_nodes(case.graph))
    return not stopped and not any(getattr(router, "straight", False) for router in routes)


def _shares(case: Case) -> dict[str, Tensor]:
    """What each number of each output counts in the sum that is differentiated: nothing in padding."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad(), in_64_bits():
        outputs = case.model.compute(case.batch, losses=False).outputs
    return case.without_padding(
        {name: torch.randn(each.shape, generator=generator, dtype=torch.float64) for name, each in outputs.items()}
    )


def _total(case: Case) -> Tensor:
    with in_64_bits():
        found = case.model.compute(case.batch)
    outputs = case.without_padding(found.outputs)
    return sum((outputs[name] * share).sum() for name, share in _shares(case).items()) + sum(found.losses.values())  # type: ignore[return-value]


def _difference(case: Case, along: dict[str, Tensor], step: float) -> float:
    """How the same sum changes along a direction, by the reference."""
    batch = {name: value.numpy() for name, value in case.batch.items()}
    shares = {name: share.numpy() for name, share in _shares(case).items()}
    sums = []
    for way in (step, -step):
        weights = {
            name: each + way * along[name].numpy() if name in along else each for name, each in case.weights.items()
        }
        found = interpret(flat_to_json(case.graph), weights, batch)
        sums.append(sum((found.outputs[name] * shares[name]).sum() for name in shares) + sum(found.losses.values()))
    return float((np.asarray(sums[0]) - np.asarray(sums[1])) / (2 * step))
