"""Pools inside the modules of pools: all ways to compute them agree, they learn, grow and are exported."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from modgraph_runtime import Bundle
from torch import Tensor

import modgraph
from modgraph.backends.onnx import deterministic
from modgraph.backends.onnx.decisions import Decisions
from modgraph.cli import main
from modgraph.ir import Grow, replay_edits
from modgraph.training.stored_run import load_run
from tests.assault.differential.numbers import judge_all
from tests.nested_pools import ADAPTERS, MORE, SPECS, TWO_LEVELS
from tests.small_runs import begin, lay_out_run

IN_A_SCAN = """
block expert(dim) {
  input x: float[dim]
  pool inner[3] = linear(dim)
  router gate = linear(1)
  y = x -> inner by gate
  output y
}
model m() {
  input x: float[time, 8]
  target t: class[3]
  pool outer[2] = expert(8)
  router r = linear(1)
  scan x as v with h: float[8] {
    h = (v + h) -> outer by r -> tanh
    yield h
  } as z
  o = (z + (x -> outer by r)) -> mean(axis="time") -> linear(3)
  output o
  loss (o, t) -> cross_entropy
}
"""


OTHERS = {**MORE, "in a scan": IN_A_SCAN}
CASES = [
    *(pytest.param(text, id=name) for name, text in SPECS.items()),
    *(pytest.param(text, id=name, marks=pytest.mark.slow) for name, text in OTHERS.items()),
]


@pytest.mark.some(2)
@pytest.mark.parametrize("text", CASES)
def test_numpy_torch_its_source_and_onnx_runtime_compute_the_same(text: str) -> None:
    """Every form of the routes against the interpreter, gradients by finite differences, the file bit for bit."""
    counts = judge_all(modgraph.loads(text), 0)
    for each in ("compared", "form masked", "source", "gradients", "bundles compared"):
        assert counts[each], f"nothing was held against the reference: {each}"


def by_hand(w: dict[str, Tensor], x: Tensor) -> Tensor:
    """The two levels as loops over tokens: a gate is the softmax share of the one module that is chosen."""

    def module(i: int, token: Tensor) -> Tensor:
        name = f"outer.{i}.expert"
        shares = F.linear(token, w[f"{name}.gate.weight"]).softmax(-1)
        j = int(shares.argmax())
        return shares[j] * F.linear(token, w[f"{name}.inner.{j}.linear.weight"], w[f"{name}.inner.{j}.linear.bias"])

    rows = []
    for token in x.flatten(0, 1):
        shares = F.linear(token, w["r.weight"]).softmax(-1)
        i = int(shares.argmax())
        rows.append(shares[i] * module(i, token))
    y = torch.stack(rows).unflatten(0, x.shape[:2])
    return F.linear(y.mean(1), w["z.linear.weight"], w["z.linear.bias"])


def test_values_and_gradients_are_those_of_loops_written_by_hand() -> None:
    model = modgraph.loads(TWO_LEVELS).build(seed=1).double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for each in model.parameters():
            each.normal_(0, 0.5, generator=generator)
    x = torch.randn(6, 5, 16, dtype=torch.float64, generator=generator)
    weights = {name: each.detach().clone().requires_grad_() for name, each in model.state_dict().items()}
    found, expected = model(x), by_hand(weights, x)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    (found**2).sum().backward()
    (expected**2).sum().backward()
    for name, each in model.named_parameters():
        mine = torch.zeros_like(each) if each.grad is None else each.grad
        theirs = weights[name].grad
        torch.testing.assert_close(mine, torch.zeros_like(each) if theirs is None else theirs, rtol=1e-9, atol=1e-9)


def test_modules_inside_take_any_axes_before_a_message() -> None:
    """A module by itself takes rows of rows, and none at all."""
    model = modgraph.loads(ADAPTERS).build(seed=1).double().eval()
    pool = model.lookup("outer")
    x = torch.randn(2, 3, 4, 8, dtype=torch.float64)
    rows = torch.stack([pool.expert(1)(each) for each in x.flatten(0, 2)]).unflatten(0, x.shape[:3])
    torch.testing.assert_close(pool.expert(1)(x), rows)
    assert pool.expert(1)(x[:0]).shape == (0, 3, 4, 8)


def test_an_outer_pool_that_grew_computes_with_its_old_modules_as_before() -> None:
    program = modgraph.loads(TWO_LEVELS)
    before = program.build(seed=1)
    grown = modgraph.backends.torch.build(replay_edits(program.ir, [Grow("outer", 1)]), seed=1)
    state = before.state_dict()
    missing, unexpected = grown.load_state_dict(
        {name: each for name, each in state.items() if name != "r.weight"}, strict=False
    )
    assert not unexpected
    assert {".".join(name.split(".")[:2]) for name in missing} == {"outer.4", "r.weight"}
    x = torch.randn(3, 16)
    torch.testing.assert_close(grown.lookup("outer.2")(x), before.lookup("outer.2")(x))


def test_an_example_with_a_close_call_in_a_pool_inside_is_known() -> None:
    model = deterministic(modgraph.loads(TWO_LEVELS).build(seed=3))
    x = torch.randn(4, 5, 16, generator=torch.Generator().manual_seed(0))
    x[2, 1] = 0  # all scores are zero
    assert Decisions(model).close_inside({"x": x}).tolist() == [False, False, True, False]


SPEC = """
block expert(dim) {
  input x: float[dim]
  pool inner[3] = linear(dim) -> gelu
  router gate = linear(1)
  y = x -> inner by gate
  output y
}
model digits(hidden=8, added=0) {
  input  image: float[1, 8, 8]
  target label: class[10]
  x = image -> flatten -> linear(hidden)
  pool outer[2] = expert(hidden)
  grow outer[added]
  router r = linear(1)
  logits = x + (x -> outer by r) -> linear(10)
  output logits
  loss cross_entropy(logits, label)
  loss 0.01 * importance(r)
}
"""


@pytest.mark.slow
def test_a_run_learns_is_exported_and_goes_on_with_more_outer_modules(tmp_path: Path) -> None:
    spec = lay_out_run(tmp_path)
    spec.write_text(SPEC)
    metrics = begin(spec, tmp_path / "run", train__epochs=3, train__batch=20)
    assert metrics["test.accuracy"] > 0.6, "it learns nothing"
    assert main(["export", str(tmp_path / "run"), "-o", str(tmp_path / "m.onnx")]) == 0
    assert Bundle(tmp_path / "m.onnx").run({"image": torch.zeros(2, 1, 8, 8).numpy()})["logits"].shape == (2, 10)
    again = {"start__run": str(tmp_path / "run"), "added": 1, "train__epochs": 1}
    begin(spec, tmp_path / "more", **again)
    old, new = (load_run(tmp_path / name).checkpoint().weights for name in ("run", "more"))
    fresh = {name for name in new if name not in old}
    assert fresh and all(name.startswith("outer.2.expert.") for name in fresh)
