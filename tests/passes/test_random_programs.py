"""Passes on programs from the whole language: what a model computes stays, and a pass applied twice changes nothing."""

from __future__ import annotations

from functools import cache

import pytest
import torch

import modgraph
from modgraph.backends.torch import Model
from modgraph.ir import Graph, free_draws
from modgraph.ir.text.parse import parse_text
from modgraph.passes import INFERENCE, OPTIMISE, TRAINING, Lower, Moved, Pass, apply_passes
from tests.assault.differential.case import Case, in_64_bits
from tests.assault.programs import program

PROGRAMS = range(24)


@cache
def case_of(number: int) -> Case:
    return Case(modgraph.loads(program(number).text), str(number))


@pytest.mark.some(4)
@pytest.mark.parametrize("number", PROGRAMS)
@pytest.mark.parametrize("passes", [TRAINING, INFERENCE], ids=["training", "inference"])
def test_a_pass_leaves_a_sound_graph_and_changes_it_once(passes: tuple[Pass, ...], number: int) -> None:
    before = case_of(number).graph
    for each in passes:
        graph = each(before)  # sound, and as the pass ensures: every pass of a test is verified
        if graph is not before:
            again = each(graph)
            assert again is graph or again == graph, f"{each.name} changes again what it has changed"
            assert parse_text(str(graph)) == graph, f"after {each.name} the text is another graph"
        before = graph


@pytest.mark.some(4)
@pytest.mark.parametrize("number", PROGRAMS)
def test_outputs_losses_records_gradients_and_draws_stay(number: int) -> None:
    case = case_of(number)
    lowered = Lower()(case.graph)
    with torch.device("meta"):
        plain = Model(case.graph, Moved(lowered))
    plain.to_empty(device="cpu").double().load_state_dict(case.model.state_dict())
    case.model.requires_grad_(True)  # frozen weights too
    assert _draws(apply_passes(lowered, OPTIMISE)) == [
        each for each in _draws(lowered) if each in _draws(case.model.computed)
    ], "draws stand in another order"
    for training in (True, False):
        found, expected = (_values(case, model.train(training)) for model in (case.model, plain))
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=1e-9, atol=1e-9, equal_nan=True, msg=name)


def _draws(graph: Graph) -> list[str]:
    return [draw.name for part in graph.parts() for draw in free_draws(part.graph)]


def _values(case: Case, model: Model) -> dict[str, torch.Tensor]:
    """What a model computes of a batch, and its gradients."""
    torch.manual_seed(0)
    with in_64_bits():
        computed = model.compute(case.batch, routing=True, moves=False)
        named = computed.outputs | computed.losses | computed.routing
        total = sum(torch.nan_to_num(each.double()).sum() for each in named.values() if each.requires_grad)
        read = dict(model.named_parameters())
        if isinstance(total, torch.Tensor) and read:
            gradients = torch.autograd.grad(total, [*read.values()], materialize_grads=True)
            named |= {f"gradient of {name}": each for name, each in zip(read, gradients, strict=True)}
    return {name: value.detach() for name, value in named.items()}
