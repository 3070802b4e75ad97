"""What losses cannot teach, and what is said of it: probabilities for logits, weights that no gradient reaches."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import modgraph
from modgraph.cli.main import main
from modgraph.diagnostics import Diagnostic

CODES = {"MG412", "MG413", "MG414"}
BEGIN = """input x: float[5, 4] target label: class[3] target y: float[5, 4] pool p[4] = linear(4)
  s = x -> linear(p, name="gate") c = s -> top_k """
NO_LOGITS = {
    "softmax": "loss cross_entropy(x -> mean -> linear(3) -> softmax, label)",
    "through a name": "q = x -> linear(3) -> softmax -> mean loss cross_entropy(q, label) output q",
    "sigmoid": "loss cross_entropy(x -> mean -> linear(3) -> sigmoid, label)",
    "twice": "output q = x -> linear(3) -> softmax -> softmax",
    "past dropout": "output q = x -> linear(3) -> softmax -> dropout -> log_softmax",
    "along a named axis": 'output q = s -> softmax -> transpose -> softmax(axis="p")',
    "among chosen": "output q = (s -> softmax, c) -> masked_softmax",
    "drawn": "output q = x -> linear(3) -> softmax -> draw",
    "entropy": "loss entropy(x -> linear(3) -> softmax)",
    "in a module": "pool e[2] = linear(3) -> softmax -> softmax output q = x -> e",
}
LOGITS = {
    "linear": "loss cross_entropy(x -> mean -> linear(3), label)",
    "relu": "loss cross_entropy(x -> mean -> linear(3) -> relu, label)",
    "log_softmax": "loss cross_entropy(x -> mean -> linear(3) -> log_softmax, label)",
    "other axes": "output q = x -> linear(3) -> softmax -> softmax(axis=-2)",
    "sigmoid before softmax": "output q = x -> linear(3) -> sigmoid -> softmax",
    "layers between": "loss cross_entropy(x -> softmax -> mean -> linear(3), label)",
    "scaled": "output q = 10 * (x -> softmax) -> softmax",
}
TASK = "output z loss mse(z, y) "
UNLEARNED = {
    "one of one": "z = x -> p by ((s, c) -> masked_softmax) " + TASK,
    "one of its sum": "g = (s -> sigmoid) * c z = x -> p by (g / (g -> sum(axis=-1) -> new_axis(p, at=-1))) " + TASK,
    "a choice alone": "z = x -> p by c " + TASK,
    "a comparison": "z = x -> p by ((s -> softmax) > 0.2) " + TASK,
    "a rank": "z = x -> p by ((s -> sort_order) < 2) " + TASK,
    "a draw": "z = x -> p by (s -> draw) " + TASK,
    "a learned threshold": "weight cut: float[p] = zeros z = x -> p by (s * (s > cut)) " + TASK,
    "inference alone": "z = x -> p by ((x -> linear(p) -> softmax, s) -> training_or_inference) " + TASK,
    "an output without a loss": "z = x -> p by (x -> linear(p) -> softmax) output s " + TASK,
}
UNTAUGHT = {
    "noisy top-1": "router r = noisy_top_k(1) z = x -> p by r loss 0.01 * load(r) " + TASK,
    "in a scan": "router r = noisy_top_k(1) scan x as v { yield v -> p by r } as z loss 0.01 * load(r) " + TASK,
    "by hand": "z = x -> p by ((s, c) -> masked_softmax) loss entropy(s) " + TASK,
}
TAUGHT = {
    "noisy top-2": "router r = noisy_top_k(2) z = x -> p by r loss 0.01 * load(r) " + TASK,
    "shares": "router r = linear(1) z = x -> p by r loss 0.01 * load(r) " + TASK,
    "before the choice": 'router r = noisy_top_k(1, softmax="before_top_k") z = x -> p by r loss 0.1 * load(r) ' + TASK,
    "a share of one": "z = x -> p by ((s -> softmax) * c) " + TASK,
    "two of two": "z = x -> p by ((s, s -> top_k(2)) -> masked_softmax) " + TASK,
    "straight through": "z = x -> p by ((s -> softmax, s -> draw) -> straight_through) " + TASK,
    "drawn by a router": "router r = categorical z = x -> p by r " + TASK,
    "agreement": "router r = agreement(2) z = x + (x -> p by r -> mean) loss 0.1 * importance(r) " + TASK,
    "frozen": "frozen { module m = linear(p) } z = x -> p by (x -> m -> top_k) " + TASK,
    "stopped on purpose": "z = x -> p by (s -> softmax -> stop_gradient) " + TASK,
    "no loss at all": "output z = x -> p by c",
    "in a scan": "scan x as v { yield v -> p by (v -> linear(p) -> softmax) } as z " + TASK,
}


def found(body: str) -> list[Diagnostic]:
    """What is said of a model that gives something out."""
    text = f"model m() {{ {BEGIN} {body} output given = s }}"
    return [each for each in modgraph.loads(text).warnings if each.code in CODES]


@pytest.mark.parametrize("case", NO_LOGITS)
def test_a_softmax_of_probabilities_is_reported_with_both_places(case: str) -> None:
    (warning,) = [each for each in found(NO_LOGITS[case]) if each.code == "MG412"]
    assert warning.span is not None and warning.notes[0].span is not None
    assert warning.notes[0].span.text.startswith(("softmax", "sigmoid")), warning.notes


@pytest.mark.parametrize("case", LOGITS)
def test_logits_are_taken_for_such(case: str) -> None:
    assert "MG412" not in {each.code for each in found(LOGITS[case])}


@pytest.mark.parametrize("case", UNLEARNED)
def test_weights_that_no_loss_reaches_are_reported_and_get_no_gradient(case: str) -> None:
    text = f"model m() {{ {BEGIN} {UNLEARNED[case]} }}"
    program = modgraph.loads(text)
    (warning,) = [each for each in program.warnings if each.code in CODES]
    assert warning.code == "MG413", warning.text()
    name = warning.text().split('"')[1]
    model = program.build().train()
    batch = {"x": torch.randn(2, 5, 4), "y": torch.randn(2, 5, 4), "label": torch.tensor([0, 2])}
    sum(model.compute(batch).losses.values()).backward()
    for key, weight in model.named_parameters():
        moves = weight.grad is not None and bool((weight.grad.abs() > 1e-7).any())
        if not key.startswith("p."):  # of which no token may have been sent to one
            assert moves != key.startswith(name), f"{key}, where {name} is told"


@pytest.mark.parametrize("case", UNTAUGHT)
def test_weights_that_only_a_balance_reaches_are_reported(case: str) -> None:
    (warning,) = [each for each in found(UNTAUGHT[case]) if each.code == "MG414"]
    assert "of a single choice" in warning.text()


@pytest.mark.parametrize("case", TAUGHT)
def test_nothing_is_said_of_what_learns_or_is_meant_not_to(case: str) -> None:
    text = f"model m() {{ {BEGIN} {TAUGHT[case]} }}"
    warnings = [each for each in modgraph.loads(text).warnings if each.code in CODES]
    assert not warnings, [each.text() for each in warnings]


def test_only_warnings_leave_the_exit_code_at_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "m.mod"
    spec.write_text(f"model m() {{ {BEGIN} {UNTAUGHT['noisy top-1']} }}")
    assert main(["check", str(spec)]) == 0
    assert "MG414" in capsys.readouterr().err


HOME = Path(__file__).parents[2]
SHIPPED = [path for path in sorted((HOME / "specs").rglob("*.mod")) if "parts" not in path.parts]


@pytest.mark.some(8)
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_specs_that_come_with_it_are_learned_whole(path: Path) -> None:
    assert not [each.text() for each in modgraph.load(path).warnings if each.code in {*CODES, "MG411"}]
