"""What `show --reads` says of outputs, against what they compute from other examples, and of ops that read padding."""

from __future__ import annotations

import json

import pytest
import torch

import modgraph
from modgraph.cli import main
from modgraph.ir.analysis.independence import find_padding_readers
from modgraph.ops.along_axis import Softmax
from tests.assault.differential.case import Case, in_64_bits
from tests.assault.programs import program

SOFTMAX = "model m() { input x: float[time, 4] y = x -> softmax(axis=-2) output y }"
MIXING = {
    "nothing": ("y = x -> linear(4)", False, False),
    "batch_norm": ("y = x -> new_axis(1) -> batch_norm -> sum(axis=-3)", True, False),
    "capacity": ("c = (x, x -> top_k) -> within_capacity(0.5) y = x * c", True, False),
    "a statistic": ("y = x - (x -> batch_mean)", True, True),
    "in a scan": ("scan x as v { c = (v, v -> top_k) -> within_capacity(0.5) yield v * c } as y", True, False),
    "in modules": (
        "pool p[2] = batch_norm -> flatten y = x -> new_axis(1, at=-1) -> p",
        True,
        False,
    ),
    "in training alone": ("y = (x - (x -> batch_mean), x) -> training_or_inference", True, False),
    "in inference alone": ("y = (x, x - (x -> batch_mean)) -> training_or_inference", False, True),
}


@pytest.mark.parametrize("name", MIXING)
def test_outputs_that_read_other_examples_are_found(name: str) -> None:
    body, *expected = MIXING[name]
    case = Case(modgraph.loads(f"model m() {{ input x: float[5, 4] {body} output y }}"), name)
    found = case.program.reads()["outputs"]["y"]["examples"]
    assert [found[mode] is not None for mode in ("training", "inference")] == expected, found
    changed = {**case.batch, "x": torch.cat([case.batch["x"][:1], 9 * case.batch["x"][1:]])}
    for training, reads in zip((True, False), expected, strict=True):
        values = []
        for batch in (case.batch, changed):
            case.model.train(training)
            torch.manual_seed(0)
            with torch.no_grad(), in_64_bits():
                values.append(case.model.compute(batch, moves=False).outputs["y"][0])
        assert reads or torch.equal(*values), (
            f"{name} reads other examples in {'training' if training else 'inference'}"
        )


def test_an_op_that_reads_padding_is_found_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = [program(n).program.ir for n in range(8)]
    graphs.append(modgraph.loads(SOFTMAX).ir)
    for graph in graphs:
        assert not [*find_padding_readers(graph)], f"{graph.name} reads no padding"
    monkeypatch.setattr(Softmax, "masks", "")
    (found,) = find_padding_readers(modgraph.loads(SOFTMAX).ir)
    assert found.name == "y.softmax", "without a mask it reads padding"
    monkeypatch.setattr(Softmax, "__module__", "mine.ops")
    assert [each.code for each in modgraph.loads(SOFTMAX).warnings] == ["MG419"], "check warns of ops of other packages"


def test_show_prints_what_outputs_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "specs/zoo/switch.mod", "--reads"]) == 0
    assert capsys.readouterr().out == (
        "output logits\n"
        "  reads the past of words, along time\n"
        "  reads other examples, by blocks.1.kept.within_capacity in training, no other examples in inference\n"
        "padding: not read\n"
    )
    assert main(["show", "specs/zoo/mixtral.mod", "--reads", "--format", "json"]) == 0
    tokens = json.loads(capsys.readouterr().out)["outputs"]["logits"]["tokens"]
    assert tokens == {"words": {"axis": "time", "training": "the past", "inference": "the past"}}
