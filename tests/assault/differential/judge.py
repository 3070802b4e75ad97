"""All ways to compute a program held against the reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

import modgraph
from modgraph.backends.errors import NoSource
from modgraph.backends.torch import build
from modgraph.backends.torch.source import write_source
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, RouteNode
from modgraph.passes import Lower
from modgraph.routers import MASKED
from tests.assault.differential.case import (
    EXAMPLES,
    Case,
    Unlike,
    Values,
    apartness,
    by_reference,
    by_torch,
    hold,
    in_64_bits,
    is_random,
    op_nodes,
)
from tests.assault.differential.failures import first_line
from tests.assault.examples_at_random import mask_padding, single_example
from tests.backends.torch.test_source import computed, made_of
from tests.reference import Unsupported

NUDGE = 1e-9
STEADY = 1e4  # a nudge grows by no more than this
DRAWS = 3  # of weights and examples, until none is close to a tie or a kink
LARGEST = 1e8  # numbers beyond it are not compared


def judge(case: Case, counts: Counter[str]) -> None:
    """Holds all ways against the reference. Counts what was compared; raises `Unlike` where two ways differ."""
    expected = by_reference(case)
    hold("reference and torch", expected, by_torch(case, case.model))
    counts["compared"] += 1
    for lowering in other_lowerings(case.graph):
        other = build(case.graph, lowering=lowering).double().eval()
        other.load_state_dict(case.model.state_dict())
        hold(f"reference and {lowering}", expected, by_torch(case, other))
        counts[f"form {lowering}"] += 1
    _hold_examples(case, counts)
    _hold_training(case, counts)
    _hold_source(case, counts)


def steady_case(program: modgraph.Program, seed: str, counts: Counter[str]) -> Case | None:
    """A case whose values are finite and hardly move with its weights and examples; None where none is found."""
    for draw in range(DRAWS):
        case = Case(program, f"{seed}.{draw}")
        try:
            values, nudged = by_reference(case), by_reference(case, nudge=NUDGE)
        except Unsupported as reason:
            counts[f"unsupported: {reason}"] += 1
            return None
        if all(_is_finite(values[name]) and apartness(values[name], nudged[name]) <= NUDGE * STEADY for name in values):
            return case
        counts["drawn again"] += 1
    counts["never steady"] += 1
    return None


def _is_finite(value: Tensor) -> bool:
    return bool(value.isfinite().all()) and not bool((value.abs() > LARGEST).any())


def other_lowerings(graph: Graph) -> list[str]:
    """The forms that routes may have beside the best."""
    names = set()
    for part in graph.parts():
        for route in part.graph.nodes_of(RouteNode):
            offered = Lower().offers(part, route)
            names |= {lowering.name for lowering in offered[1:]}
            names |= {MASKED} if len(offered) > 1 else set()
    return sorted(names)


def _hold_examples(case: Case, counts: Counter[str]) -> None:
    """Each example by itself gives what it gives in the batch."""
    if reads_the_batch(case.graph):
        return
    together = by_torch(case, case.model)
    with torch.no_grad(), in_64_bits():
        for at in range(EXAMPLES):
            single = single_example(case.graph, case.batch, at)
            found = case.model.compute(single, losses=False, routing=True)
            for name, value in (found.outputs | found.routing).items():
                if case.types[name].per == "example":
                    unpadded = mask_padding(case.graph, case.types[name], single, value)[0]
                    here = together[name][at][tuple(map(slice, unpadded.shape))]
                    hold("an example alone and in a batch", {name: unpadded}, {name: here})
    counts["examples alone"] += EXAMPLES


def reads_the_batch(graph: Graph) -> bool:
    """Whether some op makes one value of all examples."""
    return any(node.op.name.startswith("batch_") for node in op_nodes(graph)) or any(
        type_.per == "batch" for part in graph.parts() for node in part.graph for type_ in node.types
    )


def _hold_training(case: Case, counts: Counter[str]) -> None:
    """Where nothing is random, training gives what the reference does in training."""
    if any(is_random(node) for node in op_nodes(case.graph)):
        return
    try:
        expected = by_reference(case, training=True)
    except Unsupported as reason:
        counts[f"unsupported in training: {reason}"] += 1
        return
    with case.training():
        hold("reference and torch in training", expected, by_torch(case, case.model))
    counts["training"] += 1


def _hold_source(case: Case, counts: Counter[str]) -> None:
    """The model as PyTorch source gives the same, and the same gradients, in inference and in training."""
    try:
        other = made_of(write_source(case.model)).double()
        other.load_state_dict(case.model.state_dict())
        _hold_file(case, other.eval())
        with case.training():
            _hold_file(case, other.train())
    except Unlike:
        raise
    except ModgraphError as error:
        if any(each.code != NoSource.code for each in error.diagnostics):
            raise
        counts["no source"] += 1
        return
    except Exception as error:
        raise Unlike("torch and its source", f"{type(error).__name__}: {first_line(error)}") from error
    counts["source"] += 1


def _hold_file(case: Case, other: nn.Module) -> None:
    with in_64_bits():
        expected, gradients = computed(case.model, case.batch)
        found, others = computed(other, case.batch)
    hold("torch and its source", _tensors(expected), _tensors(found))
    hold("gradients of torch and of its source", gradients, others)


def _tensors(values: Mapping[Any, Tensor]) -> Values:
    """Values without what is the same number that is none."""
    return {str(name): value.detach().nan_to_num(nan=12345.0) for name, value in values.items()}
