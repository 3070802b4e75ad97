"""States that a rule moves, in a training of one's own: once a call, as the engine moves them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

import modgraph
from modgraph.backends.torch import Model, build, make_generator
from modgraph.ir import grow
from modgraph.training.run import start_run
from tests.small_runs import dotted, lay_out_run, take_step

BALANCED = """
model net() {
  input  image: float[1, 8, 8]
  target label: class[10]
  pool   expert[4] = linear(16) -> relu
  state  bias: float[expert] = zeros
  state  missed: float = zeros
  x = image -> flatten
  scores = x -> linear(expert) -> sigmoid
  chosen = scores + bias -> top_k(2)
  load = chosen -> batch_mean
  next bias = bias + 0.01 * ((load -> mean(axis=expert)) - load -> sign)
  logits = x -> expert by (scores * chosen * (1 + bias)) -> linear(10)
  next missed = 0.9 * missed + 0.1 * ((logits, label) -> cross_entropy -> batch_mean)
  output logits
  loss cross_entropy(logits, label)
}
"""
SETTINGS = {"train__epochs": 1, "train__optimizer__name": "sgd"}


def model_of(text: str = BALANCED) -> Model:
    return modgraph.loads(text).build().double().train()


def batch_of(seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    image = torch.randn(6, 1, 8, 8, generator=generator, dtype=torch.float64)
    return {"image": image, "label": torch.randint(10, (6,), generator=generator)}


def states(model: Model) -> list[Tensor]:
    """The states as they stand, whatever is left to the next call."""
    return [model.get_buffer(name).clone() for name in ("bias.value", "missed.value")]


def test_a_loop_of_ones_own_moves_weights_and_states_as_the_engine_does(tmp_path: Path) -> None:
    spec = lay_out_run(tmp_path)
    spec.write_text(BALANCED)
    with start_run(str(spec), None, dotted(SETTINGS), str(tmp_path / "run")) as engine:
        model = build(engine.graph, engine.train.seed).train()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(4):
            indices = torch.arange(20 * step, 20 * step + 20)
            batch = {name: torch.as_tensor(each[indices.numpy()]) for name, each in engine.phase.data.values.items()}
            torch.manual_seed(make_generator(engine.train.seed, "noise", step).initial_seed())
            take_step(engine, indices)
            for group, its in zip(optimizer.param_groups, engine.state.optimizer.param_groups, strict=True):
                group["lr"] = its["lr"]
            optimizer.zero_grad()
            model.compute(batch).loss.backward()
            optimizer.step()
        found, expected = model.state_dict(), engine.state.weights
        assert expected["bias.value"].any(), "nothing was moved"
        for name, each in expected.items():
            torch.testing.assert_close(found[name], each, rtol=0, atol=0, msg=name)


def test_a_call_leaves_what_states_become_to_the_next_to_eval_and_to_the_state_dict() -> None:
    model = model_of()
    start = states(model)
    model.compute(batch_of())
    assert all(map(torch.equal, states(model), start)), "a state moved before what was computed with it was used"
    model.compute(batch_of(1))
    once = states(model)
    assert not torch.equal(once[0], start[0])
    model.state_dict()
    twice = states(model)
    assert not torch.equal(twice[0], once[0])
    for settled in (model.eval(), model.train(), model.eval()):
        assert all(map(torch.equal, states(settled), twice)), "a state moved twice for one call"
    model.compute(batch_of(2))
    assert all(map(torch.equal, states(model), twice)), "a state moved in evaluation"


def test_outputs_by_themselves_move_what_needs_no_target() -> None:
    model = model_of()
    model(batch_of()["image"])
    bias, missed = states(model.eval())
    assert bias.any() and not missed.any()


def test_results_move_nothing() -> None:
    model = model_of()
    model.results(batch_of(), tuple(model.graph.losses.values()))
    assert not any(each.any() for each in states(model.eval()))


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_forward_pass_that_is_done_again_moves_nothing_and_computes_the_same(reentrant: bool) -> None:
    plain, again = model_of(), model_of()
    calls = 0

    def loss(image: Tensor, label: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return again.compute({"image": image, "label": label}).loss

    for step in range(3):
        batch = batch_of(step)
        for model in (plain, again):
            model.zero_grad()
        plain.compute(batch).loss.backward()
        image = batch["image"].clone().requires_grad_()  # without which the older form finds nothing to learn
        checkpoint(loss, image, batch["label"], use_reentrant=reentrant).backward()
        for (name, one), other in zip(plain.named_parameters(), again.parameters(), strict=True):
            assert (one.grad is None) == (other.grad is None), name
            if one.grad is not None:
                torch.testing.assert_close(other.grad, one.grad, msg=name)
    assert calls == 6
    assert all(map(torch.equal, states(plain.eval()), states(again.eval())))


def test_two_calls_may_be_differentiated_together() -> None:
    """The second call moves a state that the first has computed with."""
    model, apart = model_of(), model_of()
    (model.compute(batch_of(0)).loss + model.compute(batch_of(1)).loss).backward()
    for seed in (0, 1):
        apart.compute(batch_of(seed)).loss.backward()
    for (name, one), other in zip(model.named_parameters(), apart.parameters(), strict=True):
        if one.grad is not None:
            torch.testing.assert_close(one.grad, other.grad, msg=name)


def test_what_is_left_can_be_duplicated_loaded_over_and_cast() -> None:
    model = model_of()
    start = copy.deepcopy(model.state_dict())
    model.compute(batch_of())
    twin = copy.deepcopy(model)
    assert torch.equal(twin.state_dict()["bias.value"], model.state_dict()["bias.value"])
    assert twin.get_buffer("bias.value").any()
    model.compute(batch_of(1))
    model.load_state_dict(start)
    assert not any(each.any() for each in states(model.eval())), "what was left stands over what was loaded"
    holder = torch.nn.ModuleDict({"inner": twin.train()})
    twin.compute(batch_of(1))
    left = holder.state_dict()["inner.bias.value"]
    assert torch.equal(left.float(), twin.float().eval().get_buffer("bias.value"))


def test_a_frozen_state_moves_only_in_new_places() -> None:
    text = BALANCED.replace("state  bias: float[expert] = zeros", "frozen { state bias: float[expert] = zeros }")
    model = build(grow(modgraph.loads(text).ir, "expert", 2)).double().train()
    for seed in range(2):
        model.compute(batch_of(seed))
    bias = model.eval().get_buffer("bias.value")
    assert not bias[:4].any() and bias[4:].any()


@pytest.mark.slow
@pytest.mark.parametrize("whole", [True, False])
def test_a_compiled_model_moves_states_as_an_eager_one(whole: bool) -> None:
    torch._dynamo.reset()
    plain, compiled = model_of(), model_of()
    forward: Any = torch.compile(compiled, backend="eager", fullgraph=whole)
    for seed in range(4):
        image = batch_of(seed)["image"]
        torch.testing.assert_close(forward(image), plain(image))
    assert all(map(torch.equal, states(plain.eval()), states(compiled.eval())))
    torch._dynamo.reset()
