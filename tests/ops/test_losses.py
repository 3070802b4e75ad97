"""Losses of numbers and of labels of two classes: against torch, in what a training measures, and their messages."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from sklearn import metrics as sklearn
from torch import Tensor

import modgraph
from modgraph import ModgraphError
from modgraph.data import Arrays
from modgraph.ir.analysis.class_outputs import find_ranked_targets
from modgraph.metrics.metrics import measure

GENERATOR = torch.Generator().manual_seed(0)
Z = torch.randn(4, 5, 3, generator=GENERATOR, dtype=torch.float64)
T = torch.randn(4, 5, 3, generator=GENERATOR, dtype=torch.float64)
YES = (torch.rand(4, 5, 3, generator=GENERATOR) < 0.5).long()
LENGTH = torch.tensor([5, 2, 1, 4])
MASK = (torch.arange(5) < LENGTH[:, None])[..., None].expand(4, 5, 3)
TEXT = "model m() {{ input z: float[time, 3] target t: {}[time, 3{}] output z loss {} }}"


def loss_of(loss: str, target: Tensor, mask: bool = True) -> Tensor:
    text = TEXT.format(*(("class", ", 2") if target.dtype == torch.long else ("float", "")), loss)
    batch = {"z": Z, "t": target, "time_length": LENGTH if mask else torch.full((4,), 5)}
    (found,) = modgraph.loads(text).build().double().compute(batch, losses=True).losses.values()
    return found


def mean_over(counts: Tensor, losses: Tensor) -> Tensor:
    counts = counts & MASK
    mean: Tensor = torch.where(counts, losses, 0.0).sum((1, 2)) / counts.sum((1, 2)).clamp(min=1)
    return mean


HUBER = F.huber_loss(Z, T, reduction="none", delta=0.3)
SHARE, ALL = T.sigmoid(), torch.ones_like(MASK)
ENTROPY = F.binary_cross_entropy_with_logits(Z, YES.double(), reduction="none")
WEIGHED = F.binary_cross_entropy_with_logits(Z, SHARE, reduction="none", pos_weight=torch.tensor(5.0)) * 0.5
HOLES = torch.rand(4, 5, 3, generator=GENERATOR) < 0.5


@pytest.mark.parametrize(
    ("loss", "target", "expected"),
    [
        ("l1(z, t)", T, mean_over(ALL, (Z - T).abs())),
        ("l1(z, t, missing=true)", T.masked_fill(HOLES, torch.nan), mean_over(~HOLES, (Z - T).abs())),
        ("huber(z, t, delta=0.3)", T, mean_over(ALL, HUBER)),
        ("huber(z, t)", T, mean_over(ALL, F.smooth_l1_loss(Z, T, reduction="none"))),
        ("huber(z, t, delta=0.3, missing=true)", T.masked_fill(HOLES, torch.nan), mean_over(~HOLES, HUBER)),
        ("binary_cross_entropy(z, t)", YES, mean_over(ALL, ENTROPY)),
        ("binary_cross_entropy(z, t, ignore=1)", YES, mean_over(YES == 0, ENTROPY)),
        ("binary_cross_entropy(z, t, missing=true)", YES.masked_fill(HOLES, -1), mean_over(~HOLES, ENTROPY)),
        ("binary_cross_entropy(z, t, class_weights=[0.5, 2.5])", SHARE, mean_over(ALL, WEIGHED)),
        ('binary_cross_entropy(z, t, reduce="sum")', YES, torch.where(MASK, ENTROPY, 0.0).sum((1, 2))),
    ],
)
def test_a_loss_is_the_mean_over_what_counts(loss: str, target: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(loss_of(loss, target), expected.mean(), msg=loss)


def test_a_large_logit_and_no_error_have_finite_gradients() -> None:
    body = "input z: float[2] target t: float[2] y = z -> scale output y loss {}"
    for loss in (
        "binary_cross_entropy(y, t)",
        "binary_cross_entropy(y, t, class_weights=[1, 2])",
        "l1(y, t)",
        "huber(y, t)",
    ):
        model = modgraph.loads(f"model m() {{ {body.format(loss)} }}").build()
        computed = model.compute({"z": torch.tensor([[1e4, -1e4]]), "t": torch.tensor([[1.0, -1e4]])}, losses=True)
        computed.loss.backward()
        assert all(torch.isfinite(each.grad).all() for each in model.parameters() if each.grad is not None), loss


def measured(text: str, arrays: dict[str, Any], **asked: Any) -> dict[str, float]:
    graph = modgraph.loads(text).ir
    model = modgraph.backends.torch.build(graph, 1).double()
    return measure(model, Arrays({name: each.numpy() for name, each in arrays.items()}), asked=asked)


def test_errors_imply_mse_and_mae_and_a_recipe_asks_for_no_second_one() -> None:
    text = TEXT.format("float", "", "huber(z, t)")
    arrays = {"z": Z, "t": T, "time_length": LENGTH}
    error = (Z - T)[MASK]
    for asked in ({}, {"t": "mae"}):
        found = measured(text, arrays, **asked)
        assert found["mae"] == pytest.approx(error.abs().mean().item()), "without padding"
        assert found["mse"] == pytest.approx(error.square().mean().item())
        assert list(found) == ["total_loss", "mse", "mae"]


def test_labels_of_two_classes_are_measured_by_the_sign_of_their_logits() -> None:
    text = TEXT.format("class", ", 2", "binary_cross_entropy(z, t)")
    arrays = {"z": Z, "t": YES, "time_length": LENGTH}
    found = measured(text, arrays, t=["f1", "auc"])
    truth, logits = YES[MASK].numpy(), Z[MASK].numpy()
    assert found["accuracy"] == pytest.approx(((logits > 0) == truth).mean())
    assert found["f1"] == pytest.approx(sklearn.f1_score(truth, logits > 0, average="macro"))
    assert found["auc"] == pytest.approx(sklearn.roc_auc_score(truth, logits))
    assert not find_ranked_targets(modgraph.loads(text).ir), "an output of one logit ranks no classes"


def test_shares_are_compared_with_probabilities() -> None:
    text = TEXT.format("float", "", "binary_cross_entropy(z, t)")
    found = measured(text, {"z": Z, "t": SHARE, "time_length": LENGTH}, t=["mae", "r2"])
    truth, probability = SHARE[MASK].numpy(), Z.sigmoid()[MASK].numpy()
    assert found["mae"] == pytest.approx(sklearn.mean_absolute_error(truth, probability))
    assert found["r2"] == pytest.approx(sklearn.r2_score(truth, probability))
    assert found["accuracy"] == pytest.approx(((truth > 0.5) == (probability > 0.5)).mean())


def test_two_kinds_of_labels_have_an_accuracy_each_and_its_mean() -> None:
    text = """model m() { input z: float[3] target kind: class[3] target sure: class[2] output z
      loss cross_entropy(z, kind) loss binary_cross_entropy(z -> select(0, axis=-1), sure) }"""
    found = measured(text, {"z": Z[:, 0], "kind": Z[:, 0].argmax(-1), "sure": (Z[:, 0, 0] <= 0).long()})
    assert (found["kind.accuracy"], found["sure.accuracy"], found["accuracy"]) == (1.0, 0.0, 0.5)


@pytest.mark.parametrize(
    ("body", "words", "advice"),
    [
        ("target t: class[4, 3] loss binary_cross_entropy(x, t)", "this one has 3", "cross_entropy(logits, label)"),
        ("target t: class[2] loss binary_cross_entropy(x, t)", "an axis of 4", "cross_entropy(logits, label)"),
        ("target t: class[2] loss binary_cross_entropy(x -> linear(1), t)", "an axis of 1", "select(0, axis=-1)"),
        ("target t: class[3, 2] loss binary_cross_entropy(x, t)", "outer axes [4], not [3]", ""),
        ("target t: float[4] loss binary_cross_entropy(x, t, ignore=0)", "no class to ignore", "missing=true"),
        ("target t: float[4] loss binary_cross_entropy(x, t, class_weights=[2])", "1 weights", "class_weights=[1, 5]"),
        ("input t: token[4, 9] loss binary_cross_entropy(x, t)", "not token[4, 9]", "target label: class[2]"),
        ("target t: float[3] loss l1(x, t)", "outer axes [4], not [3]", ""),
        ("target t: float[4] loss huber(x, t, delta=0)", "must be at least", ""),
    ],
)
def test_what_does_not_fit_is_reported(body: str, words: str, advice: str) -> None:
    with pytest.raises(ModgraphError) as caught:
        modgraph.loads(f"model m() {{ input x: float[4] {body} output x }}")
    (only,) = caught.value.diagnostics
    assert words in only.text() and advice in only.advice(), only.text()


def test_a_sigmoid_before_the_loss_is_a_caution_with_its_way_out() -> None:
    text = "model m() { input x: float[4] target t: class[4, 2] p = x -> %s output p loss binary_cross_entropy(p, t) }"
    for name in ("sigmoid", "softmax"):
        (found,) = modgraph.loads(text % name).warnings
        assert found.code == "MG412" and found.advice() == f"leave {name} out", found.advice()
