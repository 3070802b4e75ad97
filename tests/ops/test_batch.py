"""Statistics over the batch: against numpy, whatever stands in padding, however many processes there are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import modgraph
from modgraph.diagnostics import ModgraphError
from modgraph.nn import BatchMean, BatchVariance, KeepRecent, Shard, use_shard
from tests.ordinary_run import some_examples

few = some_examples(30)
AXES = st.sampled_from([(), (-1,), (-2,), (-1, -2)])


@few
@given(axes=AXES, examples=st.integers(1, 5), seed=st.integers(0, 99), filling=st.sampled_from([0.0, np.nan, np.inf]))
def test_mean_and_variance_leave_padding_out(axes: tuple[int, ...], examples: int, seed: int, filling: float) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(examples, 4, 3))
    mask = (
        np.arange(4)[:, None] < rng.integers(0, 5, examples)[:, None, None] if -2 in axes else np.ones((1, 4, 1), bool)
    )
    x = torch.from_numpy(np.where(mask, values, filling)).requires_grad_()
    known = np.where(np.broadcast_to(mask, values.shape), values, np.nan)
    over = (0, *axes)
    for module, of in ((BatchMean(axes), np.nanmean), (BatchVariance(axes), np.nanvar)):
        found = module(x, torch.from_numpy(mask))
        expected = np.nan_to_num(of(known, axis=over)) if mask.any() else np.zeros(found.shape)
        np.testing.assert_allclose(found.detach(), expected, atol=1e-12)
        (gradient,) = torch.autograd.grad(found.square().sum(), x)
        assert gradient.isfinite().all() and not gradient.numpy()[~np.broadcast_to(mask, values.shape)].any()


@few
@given(axes=AXES, cut=st.integers(1, 4), seed=st.integers(0, 99))
def test_of_several_processes_they_are_those_of_one(axes: tuple[int, ...], cut: int, seed: int) -> None:
    x = torch.from_numpy(np.random.default_rng(seed).normal(size=(5, 4, 3)))
    mask = torch.arange(4)[:, None] < torch.tensor([4, 0, 2, 3, 1])[:, None, None]
    parts = ((0, cut), (cut, 5))
    for module in (BatchMean(axes), BatchVariance(axes)):
        known = list[Tensor]()  # the sums that both processes know, as they come to be known
        while True:
            mine = [_sums(module, x, mask, part, known) for part in parts]
            if len(mine[0][1]) == len(known):
                break
            known.append(mine[0][1][-1] + mine[1][1][-1])
        for found, _ in mine:
            torch.testing.assert_close(found, module(x, mask))


@pytest.mark.parametrize("use", ["importance(x)", "load(x)", '(x, x > 0) -> within_capacity(1.0, axis="time")'])
def test_an_axis_of_any_length_is_none_of_modules(use: str) -> None:
    with pytest.raises(ModgraphError, match='along "time", so it is no axis of modules'):
        modgraph.loads(f"model m() {{ input x: float[5, time] y = {use} loss mean(y, axis=-1) output x }}")


STATE_USES = {
    "y = (s, s) -> concat": (5, 12),
    "y, z = s -> split([2, 4])": (5, 2),
    "y = (s, s) -> stack": (2, 5, 6),
    "y = (s, x) -> masked_softmax": (4, 5, 6),  # of each example, as one of its values is
}


@pytest.mark.parametrize("use", STATE_USES)
def test_a_type_says_whether_a_value_is_one_over_the_batch(use: str) -> None:
    program = modgraph.loads(f"model m() {{ input x: float[5, 6] state s: float[5, 6] = zeros {use} output y }}")
    (result,) = program.ir.outputs.values()
    found = program.build()(torch.zeros(4, 5, 6))
    assert isinstance(found, Tensor) and found.shape == STATE_USES[use]
    assert program.ir.type_of(result).per == ("example" if len(found) == 4 else "batch")


MIXED = [
    "(s, x) -> concat",
    "(x, s) -> straight_through",
    "(x, s) -> within_capacity(1.0)",
    "(s, x) -> normal_noise",
    "(x, s -> mean(axis=-1)) -> draw",
    "cross_entropy(s, label)",
]
OF_BATCHES = ["entropy(s)", "mse(s, s)", "gaussian(s, s, variance=1.0)", 'importance(s, over="example")']


@pytest.mark.parametrize("use", [*MIXED, *OF_BATCHES])
def test_what_needs_values_of_each_example_refuses_those_over_the_batch(use: str) -> None:
    inputs = "input x: float[5, 6] target label: class[5, 6] state s: float[5, 6] = zeros"
    expected = "or all over the batch" if use in MIXED else "this is one over the batch"
    with pytest.raises(ModgraphError, match=expected):
        modgraph.loads(f"model m() {{ {inputs} y = {use} loss mean(x ** 2) -> mean(axis=-1) output x }}")


class _Waits(Exception):
    """A process needs a sum that is not known yet."""


@few
@given(batches=st.lists(st.integers(1, 9), min_size=1, max_size=5), length=st.integers(1, 7), seed=st.integers(0, 99))
def test_a_record_keeps_the_most_recent_values_of_all_processes(batches: list[int], length: int, seed: int) -> None:
    """Batches smaller and larger than the record; the second of two processes may have no example."""
    values = torch.from_numpy(np.random.default_rng(seed).normal(size=(sum(batches), 3))).requires_grad_()
    record, module = torch.zeros(3, length, dtype=torch.float64), KeepRecent()
    for x in values.split(batches):
        moved, cut = module(record, x), (len(x) + 1) // 2
        for start, stop in ((0, cut), (cut, len(x))):
            whole = torch.zeros(len(x), 3, dtype=torch.float64)
            whole[:cut], whole[cut:] = x[:cut].detach(), x[cut:].detach()
            with use_shard(Shard(start, stop, len(x), lambda own, whole=whole: whole, torch.Generator())):
                torch.testing.assert_close(module(record, x[start:stop]), moved, atol=0, rtol=0)
        record = moved
    expected = np.concatenate([np.zeros((length, 3)), values.detach().numpy()])[-length:].T
    np.testing.assert_array_equal(record, expected)
    assert not record.requires_grad


def _sums(
    module: BatchMean, x: Tensor, mask: Tensor, part: tuple[int, int], known: list[Tensor]
) -> tuple[Tensor, list[Tensor]]:
    """What a process computes with the sums that are known, and its parts of these and of the next that it needs."""
    asked = list[Tensor]()

    def add(own: Tensor) -> Tensor:
        asked.append(own)
        if len(asked) > len(known):
            raise _Waits
        return known[len(asked) - 1]

    with use_shard(Shard(*part, 5, add, torch.Generator())):
        try:
            return module(x[slice(*part)], mask[slice(*part)]), asked
        except _Waits:
            return x, asked


def test_a_balance_loss_is_written_with_them() -> None:
    text = """model m(experts=4) { input x: float[time, 6] pool p[experts] = linear(3)
      scores = x -> linear(p) -> softmax
      chosen = scores -> top_k(1)
      shares = chosen -> batch_mean("time")
      y = x -> p by (scores * chosen)
      output y
      loss balance = experts * (shares * (scores -> batch_mean("time")) -> sum(axis="p"))
      loss spread = x -> batch_variance("time") -> mean(axis=-1) }"""
    model, x, length = modgraph.loads(text).build(), torch.randn(3, 5, 6), torch.tensor([5, 2, 0])
    filled = x.masked_fill(torch.arange(5)[:, None] >= length[:, None, None], 7.0)
    losses = model.compute({"x": filled, "time_length": length}).losses
    rows = torch.cat([x[0], x[1, :2]])
    linear = model.get_submodule("scores.linear")
    scores = linear(rows).softmax(-1)
    shares = torch.nn.functional.one_hot(scores.argmax(-1), 4).float().mean(0)
    torch.testing.assert_close(losses["loss.balance"], 4 * (shares * scores.mean(0)).sum())
    torch.testing.assert_close(losses["loss.spread"], rows.var(0, unbiased=False).mean())


MISTAKES = {
    "x -> batch_mean(-1)": 'batch_mean("time")',
    'x -> batch_mean("time") -> batch_mean': "over the batch already",
    'x -> batch_mean("time", "time")': "occurs twice",
    "(x, x -> mean(axis=-1)) -> keep_recent": "a record is a state",
    "(s, s -> sum(axis=-1)) -> keep_recent": "one over the batch",
    '(s, x -> mean(axis="time")) -> keep_recent': "outer axes [2], not [6]",
}


@pytest.mark.parametrize("value", MISTAKES)
def test_mistakes_are_reported(value: str) -> None:
    inputs = "input x: float[time, 6] state s: float[2, 9] = zeros"
    with pytest.raises(ModgraphError) as caught:
        modgraph.loads(f"model m() {{ {inputs} y = {value} loss mean(y, axis=-1) output x }}")
    assert MISTAKES[value] in str(caught.value)


def test_an_output_that_depends_on_the_batch_is_not_exported(tmp_path: Path) -> None:
    text = """model m() { input x: float[6] state s: float[6] = ones
      y = x - (x -> batch_mean) + s output y output z = x * s }"""
    with pytest.raises(ModgraphError, match="a statistic of the whole batch") as caught:
        modgraph.export(modgraph.loads(text).build(), tmp_path / "m.onnx")
    assert 'output "z"' not in str(caught.value)


def test_a_balance_of_nothing_is_zero_and_teaches_nothing_whatever_its_weight() -> None:
    text = "model m() { input x: float[5, 4] g = (x -> linear(3)) * 0 output g loss 1000 * importance(g) }"
    model = modgraph.loads(text).build()
    model.compute({"x": torch.randn(2, 5, 4)}).loss.backward()
    gradients = [each.grad for each in model.parameters() if each.grad is not None]
    assert gradients and all(bool((each == 0).all()) for each in gradients), "a gradient is not zero"
