"""The language model of the sweep on experts: no word depends on a later one or on another text."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import modgraph
from modgraph.study.file import read_sweep_file
from modgraph.study.plan import make_plan

SPEC = "docs/sweeps/language.mod"


@pytest.mark.parametrize("experts", [1, 4])
@pytest.mark.parametrize("training", [False, True])
def test_a_prediction_depends_on_no_later_word_and_on_no_other_text(experts: int, training: bool) -> None:
    model = modgraph.load(SPEC, vocabulary=50, dim=16, hidden=8, experts=experts).build(seed=0).train(training)
    words = torch.randint(50, (3, 12), generator=torch.Generator().manual_seed(0))
    others = words.clone()
    others[0, 7:] = (words[0, 7:] + 1) % 50  # later words
    others[1] = words[1].flip(0)  # another text
    others[2, 5:] = 0  # padding
    lengths = torch.tensor([12, 12, 5])
    before, after = (
        model.compute({"words": each, "next": each, "time_length": lengths}).outputs["logits"]
        for each in (words, others)
    )
    torch.testing.assert_close(before[0, :7], after[0, :7], msg="a later word changes a prediction")
    torch.testing.assert_close(before[2, :5], after[2, :5], msg="padding or another text changes a prediction")
    assert (before[0, 7:] - after[0, 7:]).abs().amax(-1).min() > 1e-3, "a word changes what is predicted after it"


def test_one_expert_is_the_dense_model_without_a_router() -> None:
    names = set(modgraph.load(SPEC, experts=1).build(seed=0).state_dict())
    assert not any("router" in name or "expert" in name for name in names), names


@pytest.mark.slow
def test_models_of_a_width_have_equal_active_macs(tmp_path: Path) -> None:
    plan = make_plan(read_sweep_file("docs/sweeps/language_sweep.yaml").sweeps, tmp_path)
    found = {(each.overrides["dim"], each.cost["active_macs"]) for each in plan.points}
    assert found == {(64, 15_532_032), (128, 43_646_976)}, "another budget for some of its models"
