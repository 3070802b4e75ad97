"""Choices that use modules evenly over the whole batch: their equations, padding, processes, inference, and routers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from modgraph_runtime import Bundle
from scipy.optimize import linear_sum_assignment
from torch import Tensor

import modgraph
from modgraph import ModgraphError
from modgraph.nn import BalancedAssignment, Shard, Sinkhorn, use_shard
from tests.backends.torch.test_source import check

GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(6, 8, 4, generator=GENERATOR, dtype=torch.float64) + torch.tensor([2.0, 0.0, -1.0, 0.0])
LENGTH = torch.tensor([8, 3, 0, 5, 8, 1])
MASK = (torch.arange(8) < LENGTH[:, None])[..., None]


def test_shares_of_tokens_and_of_modules_both_add_up() -> None:
    shares = Sinkhorn(-1, 50).train()(X).exp()
    torch.testing.assert_close(shares.sum(-1), torch.ones(6, 8, dtype=torch.float64))
    torch.testing.assert_close(shares.sum((0, 1)), torch.full((4,), 12.0, dtype=torch.float64), rtol=1e-6, atol=0)
    plan = X.flatten(0, 1).exp()
    for _ in range(50):  # Sinkhorn and Knopp: scale rows, then columns
        plan = plan / plan.sum(1, keepdim=True)
        plan = plan / plan.sum(0) * 12
    torch.testing.assert_close(shares.flatten(0, 1), plan / plan.sum(1, keepdim=True))


def test_the_correction_has_no_gradient() -> None:
    x = X.clone().requires_grad_()
    weights = torch.randn(X.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = Sinkhorn(-1, 8).train()(x)
    (gradient,) = torch.autograd.grad((found * weights).sum(), x)
    torch.testing.assert_close(gradient, weights - found.detach().exp() * weights.sum(-1, keepdim=True))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("tokens", "modules"), [(64, 4), (50, 8), (7, 3), (5, 8)])
def test_an_assignment_is_even_and_nearly_the_best(seed: int, tokens: int, modules: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(tokens, modules, generator=generator) + seed * torch.randn(modules, generator=generator)
    choice = BalancedAssignment(-1, 8).train()(x)
    room = -(-tokens // modules)
    assert (choice.sum(-1) == 1).all() and choice.sum(0).max() <= room
    copies = x.repeat_interleave(room, 1).numpy()
    best = copies[linear_sum_assignment(copies, maximize=True)].sum()
    one_each = x[torch.arange(tokens), torch.arange(tokens) % modules].sum().item()
    assert (x * choice).sum() >= one_each + 0.97 * (best - one_each), "less than nearly the best"


@pytest.mark.parametrize("kind", [Sinkhorn, BalancedAssignment])
@pytest.mark.parametrize("filling", [0.0, np.nan, np.inf])
def test_padding_uses_nothing(kind: type[Sinkhorn | BalancedAssignment], filling: float) -> None:
    rows = X[MASK.expand_as(X)].reshape(-1, 4)
    found = kind(-1, 8).train()(X.masked_fill(~MASK, filling), MASK)[MASK.expand_as(X)].reshape(-1, 4)
    torch.testing.assert_close(found, kind(-1, 8).train()(rows))
    assert kind is Sinkhorn or found.sum(0).max() == 7, "25 tokens for four modules"


@pytest.mark.parametrize("kind", [Sinkhorn, BalancedAssignment])
def test_of_several_processes_it_is_that_of_one(kind: type[Sinkhorn | BalancedAssignment]) -> None:
    expected, found, parts = kind(-1, 8).train()(X, MASK), list[Tensor](), ((0, 2), (2, 6))
    for start, stop in parts:

        def add(own: Tensor) -> Tensor:
            whole = MASK.expand_as(X) if (own.eq(0) | own.eq(1)).all() else X.masked_fill(~MASK, 0)
            torch.testing.assert_close(own[start:stop], whole[start:stop].to(own.dtype))  # noqa: B023
            return whole.to(own.dtype)

        with use_shard(Shard(start, stop, 6, add, torch.Generator())):
            found.append(kind(-1, 8).train()(X[start:stop], MASK[start:stop]))
    there = MASK.expand_as(X)
    torch.testing.assert_close(torch.cat(found)[there], expected[there])


ROUTED = """
router even() for p {
  input x: float[tokens, dim]
  scores = x -> linear(p)
  CHOICE
  record gates
  y = x -> p by gates
  output y
}
model m() {
  input x: float[time, 6]
  target t: float[6]
  pool expert[4] = linear(6)
  router r = even
  y = x -> expert by r -> mean
  output y
  loss mse(y, t)
}
"""
BASE = "choice = scores -> balanced_assignment gates = choice * (scores -> sigmoid)"
S_BASE = "choice = scores -> sinkhorn(16) -> top_k gates = choice * (scores -> softmax)"
PLAIN = "choice = scores -> top_k gates = choice * (scores -> softmax)"


@pytest.mark.some(1)
@pytest.mark.parametrize("choice", [BASE, S_BASE])
def test_a_router_is_even_in_training_and_plain_in_inference(choice: str, tmp_path: Path) -> None:
    program = modgraph.loads(ROUTED.replace("CHOICE", choice))
    assert not [each for each in program.warnings if each.code == "MG407"], "it needs no balance loss"
    model = program.build(seed=0)
    model.state_dict()["r.scores.linear.bias"][0] = 3.0  # nearly all tokens prefer the first module
    x = torch.randn(8, 8, 6, generator=torch.Generator().manual_seed(0))
    batch = {"x": x, "time_length": torch.full((8,), 8)}
    used = {
        training: (model.train(training).compute(batch, losses=False, routing=True).routing["expert.gates"] != 0).sum(
            (0, 1)
        )
        for training in (True, False)
    }
    assert used[True].max() <= (16 if choice is BASE else 26), "evenly in training"
    assert used[False][0] > 40, "by score in inference"
    plain = modgraph.loads(
        ROUTED.replace("CHOICE", PLAIN.replace("softmax", "sigmoid" if choice is BASE else "softmax"))
    )
    same = plain.build(seed=0)
    same.load_state_dict(model.state_dict())
    found, expected = (each.eval()(x, time_length=batch["time_length"]) for each in (model, same))
    torch.testing.assert_close(found, expected)
    modgraph.export(model, tmp_path / "m.onnx")
    arrays = {"x": x[:3].numpy(), "time_length": np.array([8, 2, 5])}
    singles = [
        Bundle(tmp_path / "m.onnx").run({name: each[at : at + 1] for name, each in arrays.items()})["y"]
        for at in range(3)
    ]
    together = Bundle(tmp_path / "m.onnx").run(arrays)["y"]
    np.testing.assert_allclose(np.concatenate(singles), together, atol=1e-6, err_msg="of each example alone")
    check(model)


def test_a_router_without_them_needs_balance() -> None:
    codes = [each.code for each in modgraph.loads(ROUTED.replace("CHOICE", PLAIN)).warnings]
    assert "MG407" in codes


@pytest.mark.parametrize("name", ["sinkhorn", "balanced_assignment"])
def test_it_reads_later_tokens_in_training_and_says_so(name: str) -> None:
    text = f"model m() {{ input x: float[time, 4] y = x * (x -> {name}) output y require causal(y, x) }}"
    with pytest.raises(ModgraphError) as caught:
        modgraph.loads(text)
    (only,) = caught.value.diagnostics
    assert "in training" in only.text() and name in only.text() and "choose by themselves" in only.advice(), only.text()


def test_an_axis_of_any_length_is_none_of_modules() -> None:
    with pytest.raises(ModgraphError, match='along "time", so it is no axis of modules'):
        modgraph.loads("model m() { input x: float[time, 4] y = x -> sinkhorn(axis=-2) output y }")
