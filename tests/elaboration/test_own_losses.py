"""Losses of one's own on labels: which value they compare with the label, and what follows for metrics."""

from __future__ import annotations

import pytest
import torch

import modgraph
from modgraph.ir import comparisons, with_missing_labels
from modgraph.ir.analysis.class_outputs import find_ranked_targets
from modgraph.metrics.target_metrics import derive_metrics

HEAD = "input x: float[6] target label: class[kind=3] scores = x -> linear(kind)"
MARGIN = "t = label -> one_hot  loss margin = t * maximum(0.9 - scores, 0) ** 2 + 0.5 * scores ** 2 -> sum(axis=kind)"
COMPARED = {
    f"{MARGIN} output scores": "scores.linear",
    f"{MARGIN} output p = scores -> softmax": "scores.linear",
    "loss nll = -((scores -> log_softmax, label -> one_hot) -> contract) output scores": "scores.linear",
    "loss nll = -((scores -> log_softmax, label) -> lookup) output scores": "scores.linear",
    f"{MARGIN} loss b = (x -> linear(3) -> mean(axis=-1)) output scores output x": "scores.linear",
    "loss b = ((x -> linear(1)) -> mean(axis=-1)) * (label == 2) output scores": "",
    f"other = x -> linear(kind) {MARGIN} loss c = (t * other -> sum(axis=kind)) output scores output other": "",
    f"{MARGIN} output x": "",
    "loss g = (x + (label % 2 -> one_hot(6))) * (scores -> sum(axis=kind)) -> sum(axis=-1) output scores": "",
    "target b: class[3] loss s = (label -> one_hot) * (b -> one_hot) * scores -> sum(axis=kind) output scores": "",
}


@pytest.mark.parametrize("body", COMPARED)
def test_a_loss_of_ones_own_compares_the_output_that_meets_the_label(body: str) -> None:
    graph = modgraph.loads(f"model m() {{ {HEAD} {body} }}").ir
    found = {each.prediction.node for each in comparisons(graph)}
    assert found == ({COMPARED[body]} - {""}), "another prediction"
    assert [each.name for each in derive_metrics(graph)] == ["accuracy"] * bool(found), "other metrics"
    assert len(find_ranked_targets(graph)) == len(found), "an output ranks no classes"


def test_a_comparison_of_an_op_counts_before_formulas() -> None:
    graph = modgraph.loads(f"model m() {{ {HEAD} {MARGIN} loss cross_entropy(scores, label) output scores }}").ir
    assert [each.node.op.name for each in comparisons(graph)] == ["cross_entropy"]


def test_missing_labels_count_neither_in_the_loss_nor_in_its_mean() -> None:
    text = f"model m() {{ {HEAD} {MARGIN.replace('one_hot', 'one_hot(missing=true)')} output scores }}"
    program = modgraph.loads(text.replace("0.5 * scores ** 2", "(t -> sum(axis=kind)) * scores ** 2"))
    assert with_missing_labels(program.ir) == {"label"}, "a missing label is a mistake"
    model, x = program.build(), torch.randn(3, 6)
    some = model.compute({"x": x, "label": torch.tensor([1, -1, 2])}).loss
    known = model.compute({"x": x[[0, 2]], "label": torch.tensor([1, 2])}).loss
    torch.testing.assert_close(some, known)


def test_labels_of_each_word_meet_the_scores_of_each_word() -> None:
    program = modgraph.loads("""model m() { input x: float[time, 6] target word: class[time, 3] s = x -> linear(3)
      loss hinge = maximum(1 - (2 * (word -> one_hot) - 1) * s, 0) -> sum(axis=-1) -> mean(axis="time") output s }""")
    (compared,) = comparisons(program.ir)
    assert compared.target == "word" and compared.prediction.node == "s.linear"
