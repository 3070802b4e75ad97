"""Which steps of a plan come before the outputs are returned, so that gradients are added up in the plan's order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from torch.nn import Module

from modgraph import nn
from modgraph.backends.torch.route import CompiledRoute
from modgraph.backends.torch.run import Step
from modgraph.backends.torch.scan import CompiledScan
from modgraph.ir import Result

NOISE = (nn.Draw, nn.GumbelNoise, nn.NormalNoise)
DRAWS = (*NOISE, nn.Dropout)
UNLEARNT = (*NOISE, nn.Above, nn.Positions, nn.SortOrder, nn.StopGradient, nn.TopKMask)  # no gradient goes through
ANY_ORDER = 2  # so many numbers give the same sum in any order
CHANCE = Result("what is drawn next")  # no node is called so, since no name has a space


def before_return(steps: Sequence[Step], needed: Iterable[str]) -> set[str]:
    """The steps that outputs need, and those for losses alone that cannot be put behind them: which draw, or read a
    value whose gradient is a sum of several, before another step does so that stays."""
    stay = set(needed)
    reads = Counter(each for step in steps for each in _reads(step))
    in_order = {CHANCE, *(each for each, times in reads.items() if times > ANY_ORDER)}
    while True:
        later, too_early = set[Result](), set[str]()
        for step in reversed(steps):
            if step.node in stay:
                later |= in_order.intersection(_reads(step))
            elif not later.isdisjoint(_reads(step)):
                too_early.add(step.node)
        if not too_early:
            return stay
        stay |= _with_sources(steps, too_early)


def _reads(step: Step) -> list[Result]:
    """The values that a step reads, as often as each gets a gradient of it, and chance."""
    chance = [CHANCE] if any(isinstance(each, DRAWS) for each in _modules(step.compute)) else []
    if isinstance(step.compute, UNLEARNT):
        return chance
    if not isinstance(step.compute, CompiledRoute) or step.compute.pool is None:
        return [*step.operands, *chance]
    tokens, *others = step.operands
    others = others[:1] if isinstance(step.compute.router, nn.Chosen) else others
    return [*[tokens] * len(step.compute.pool), *others, *chance]


def _modules(compute: Any) -> Iterator[Any]:
    """All that something computes with."""
    if isinstance(compute, CompiledScan):
        yield from (each for step in compute.plan.steps for each in _modules(step.compute))
    elif isinstance(compute, CompiledRoute):
        yield from (each for part in (compute.pool, compute.router) for each in _modules(part))
    elif isinstance(compute, Module):
        yield from compute.modules()


def find_dependents(steps: Sequence[Step], inputs: Iterable[str]) -> set[str]:
    """The steps that read some inputs in inference, or values computed from them."""
    found = set(inputs)
    for step in steps:
        if not found.isdisjoint(each.node for each in (*(step.evaluated or step.operands), *step.lengths)):
            found.add(step.node)
    return found


def _with_sources(steps: Sequence[Step], nodes: set[str]) -> set[str]:
    """Some steps and those that they depend on."""
    found = set(nodes)
    for step in reversed(steps):
        if step.node in found:
            found |= {each.node for each in (*step.operands, *step.lengths)}
    return found
