"""Costs, against counts made by hand and those of the papers."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from modgraph.cli import main
from modgraph.inspect.cost import Cost
from modgraph.inspect.cost_text import note_upper_bound
from modgraph.program import load, loads

VIT = """
model vit(dim=384, depth=12, heads=6) {
  input image: float[3, 224, 224]
  x = image -> patch_embed(16, dim) -> class_token -> position
  repeat blocks[i] in 0..depth {
    x = x + (x -> layer_norm -> attention(heads))
    x = x + (x -> layer_norm -> linear(4 * dim) -> gelu -> linear(dim))
  }
  features = x -> layer_norm -> select(0)
  output features
}
"""


def test_smn_has_the_parameters_of_the_paper() -> None:
    assert load("specs/smn.mod").cost().parameters == 130_826
    assert load("specs/smn.mod", bias=True).cost().parameters == 131_210
    assert load("specs/smn.mod", iterations=0).cost().parameters == 130_826


def test_a_round_of_agreement_costs_the_same_each_time() -> None:
    macs = [load("specs/smn.mod", iterations=rounds).cost().macs for rounds in range(6)]
    steps = [after - before for before, after in pairwise(macs)]
    assert steps[1:] == [98_304] * 4
    assert steps[0] == 98_304 + 64 * 64 * 384  # keys are made from the first round on


def test_vit_s16_costs_what_is_known_of_it() -> None:
    cost = loads(VIT).cost()
    assert cost.parameters == 21_665_664
    assert cost.macs == pytest.approx(4.598e9, rel=1e-3)


def test_a_convolution_and_a_linear_map_by_hand() -> None:
    text = (
        "model m() { input image: float[3, 10, 12] "
        "y = image -> conv(8, kernel=3, stride=2, padding=1) -> flatten -> linear(5, bias=false) output y }"
    )
    cost = loads(text).cost()
    assert cost.nodes["y.conv"] == Cost(3 * 9 * 8 + 8, 3 * 9 * 8 + 8, 3 * 9 * 8 * 5 * 6, 3 * 9 * 8 * 5 * 6)
    assert cost.nodes["y.linear"].parameters == cost.nodes["y.linear"].macs == 8 * 5 * 6 * 5


def test_subtotals_are_sums_of_what_is_below() -> None:
    nodes = load("specs/smn.mod", modules=3).cost().nodes
    for name, cost in nodes.items():
        below = [other for other in nodes if other.rpartition(".")[0] == name]
        if below and name != "specialist":
            assert sum((nodes[each] for each in below), Cost()) == cost
    top = [cost for name, cost in nodes.items() if "." not in name]
    assert sum(top, Cost()).parameters == load("specs/smn.mod", modules=3).cost().parameters


def test_shared_weights_count_once_and_their_work_each_time() -> None:
    text = "model m() { input x: float[4] module e = linear(4, bias=false) y = x -> e -> e output y }"
    cost = loads(text).cost()
    assert (cost.parameters, cost.macs) == (16, 32)


def test_an_axis_of_any_length_counts_as_one_or_as_asked() -> None:
    text = "model m() { input x: float[time, 4] y = x -> linear(3) output y }"
    assert loads(text).cost().macs == 12
    assert loads(text).cost(time=10).macs == 120


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["tiem=3"], 'did you mean "time"'),
        (["x=3"], "its axes without a number: time"),
        (["time=3", "time=4"], "twice"),
        (["time=0"], "from 1"),
        (["time=-1"], "from 1"),
        (["time=x"], "from 1"),
        (["time=²"], "from 1"),
        (["time"], "from 1"),
        (["time=9999999999"], "from 1"),
        (["=3"], "unknown axis of any length"),
        (["time=6"], "6 tokens do not fit 5 positions"),
    ],
)
def test_lengths_that_mean_nothing_are_reported(
    given: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "m.mod"
    spec.write_text("model m() { input x: float[time, 4] y = x -> position(5) output y }")
    assert main(["cost", str(spec), *(f"--length={each}" for each in given)]) == 1
    assert words in capsys.readouterr().err
    assert main(["cost", str(spec), "--length", "time=5"]) == 0


def gmoe(**parameters: object) -> Cost:
    return load("specs/gmoe.mod", **parameters).cost()


def test_gmoe_s16_has_the_parameters_of_the_paper() -> None:
    assert gmoe().parameters == 33_814_363
    assert gmoe(classes=7).parameters == 33_684_233
    assert gmoe(gating="linear").parameters == 33_618_777
    for classes in (1, 345):
        assert gmoe(sparse=[], classes=classes).parameters == 21_665_664 + 385 * classes


def test_gmoe_b16_is_the_larger_vision_transformer_with_the_same_mixtures() -> None:
    expert, router = 2 * 4 * 768 * 768 + 5 * 768, 768 * 256 + 256 + 6 * 256 + 1
    plain = gmoe(dim=768, heads=12, sparse=[]).parameters
    assert plain == 85_798_656 + 769 * 345
    assert gmoe(dim=768, heads=12).parameters == plain + 2 * (5 * expert + router)
    every_two = gmoe(dim=768, heads=12, sparse=[1, 3, 5, 7, 9, 11])
    assert every_two.parameters == plain + 6 * (5 * expert + router)


def test_a_mixture_of_gmoe_costs_its_experts_and_its_router() -> None:
    for gating, layer in (("cosine", 7_189_505), ("linear", 7_091_712)):
        nodes = gmoe(gating=gating).nodes
        assert nodes["blocks.8.expert"].parameters + nodes["blocks.8.gate"].parameters == layer


def test_gmoe_s16_computes_what_the_paper_says() -> None:
    assert gmoe(sparse=[]).active_macs == pytest.approx(4.599e9, rel=1e-3)
    for k, with_routers, without in ((1, 4.638e9, 4.599e9), (2, 5.103e9, 5.063e9)):
        cost = gmoe(k=k)
        routers = sum(cost.nodes[f"blocks.{block}.gate"].active_macs for block in (8, 10))
        assert routers == 2 * 197 * 256 * (384 + 6)
        assert cost.active_macs == pytest.approx(with_routers, rel=1e-3)
        assert cost.active_macs - routers == pytest.approx(without, rel=1e-3)
    expert, dense = gmoe(k=2).nodes["blocks.8.expert"], gmoe(sparse=[]).nodes["blocks.8.mlp"]
    assert (expert.macs, expert.active_macs) == (6 * dense.macs, 2 * dense.macs)


@pytest.mark.parametrize(
    ("weights", "bounded"),
    [("s -> relu", False), ("s * (s > 0.5)", False), ("s * (s -> top_k(2))", True), ("s -> softmax", True)],
)
def test_a_choice_by_value_makes_active_macs_an_upper_bound(weights: str, bounded: bool) -> None:
    body = f"pool p[3] = linear(5) s = x -> linear(p) y = x -> p by ({weights}) output y"
    found = note_upper_bound(loads(f"model m() {{ input x: float[6, 5] {body} }}").ir)
    assert bool(found) is not bounded, f"{weights}: {found}"
    assert all("gates of p choose by value" in line and "upper bound" in line for line in found)
