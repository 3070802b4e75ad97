"""Arrays in another kind than the spec's come with the call of numpy that converts them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import modgraph
from modgraph.cli import main
from modgraph.data import Npz
from modgraph.diagnostics import ModgraphError

SPEC = """model toy() {
  input x: float[2] target label: class[3]
  logits = x -> linear(3) output logits loss cross_entropy(logits, label)
}"""
LABELS = np.arange(30) % 3
KINDS = {
    "whole floats": (LABELS.astype(float), 'convert it: label.astype("int64")'),
    "truths": (LABELS == 1, 'convert it: label.astype("int64")'),
    "one-hot": (np.eye(3)[LABELS], "convert it: label.argmax(1)"),
    "one-hot integers": (np.eye(3, dtype=int)[LABELS], "convert it: label.argmax(1)"),
    "a column": (LABELS[:, None], "convert it: label.squeeze(1)"),
    "a column of floats": (LABELS[:, None] * 1.0, 'convert it: label.squeeze(1).astype("int64")'),
    "other numbers": (LABELS + 0.5, "name arrays as"),
    "probabilities": (np.full((30, 3), 1 / 3), "name arrays as"),
}


def advice_of(path: Path) -> str:
    with pytest.raises(ModgraphError) as caught:
        Npz(train=str(path)).splits(modgraph.loads(SPEC).ir)
    (found,) = caught.value.diagnostics
    return f"{found.code} {found.text()} · {found.advice()}"


@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_another_kind_come_with_their_conversion(tmp_path: Path, kind: str) -> None:
    labels, words = KINDS[kind]
    np.savez(tmp_path / "toy.npz", x=np.zeros((30, 2)), label=labels)
    found = advice_of(tmp_path / "toy.npz")
    assert found.startswith("MG511") and words in found, found
    if "convert it: label" in words:
        call = words.partition("label")[2]
        converted = eval(f"labels{call}", {"labels": labels})
        np.savez(tmp_path / "toy.npz", x=np.zeros((30, 2)), label=converted)
        assert Npz(train=str(tmp_path / "toy.npz")).splits(modgraph.loads(SPEC).ir), "what the help says works"


def test_one_array_without_a_name_says_how_to_save_those_of_the_spec(tmp_path: Path) -> None:
    np.save(tmp_path / "b8.npy", np.zeros((8, 2)))
    found = advice_of(tmp_path / "b8.npy")
    assert "it is one array without a name (.npy)" in found, found
    assert 'numpy.savez("b8.npz", x=…, label=…)' in found, "the spec's names, and a file of that kind"


@pytest.mark.parametrize("command", ["train", "check", "show"])
def test_a_spec_named_without_its_suffix_is_suggested(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "toy.mod").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    assert main([command, "toy"]) == 1
    assert 'did you mean "toy.mod"?' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("metric", "meant"),
    [("validation.acc", "validation.accuracy"), ("validation.loss", "validation.total_loss"), ("acc", "accuracy")],
)
def test_a_short_name_of_a_metric_is_understood(metric: str, meant: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "toy.npz", x=np.zeros((30, 2)), label=LABELS)
    (tmp_path / "toy.mod").write_text(SPEC)
    recipe = {"data": {"name": "npz", "train": str(tmp_path / "toy.npz")}, "train": {"validation": 0.2, "best": metric}}
    with pytest.raises(ModgraphError, match=f'did you mean "{meant}"'):
        modgraph.train(str(tmp_path / "toy.mod"), recipe, out=str(tmp_path / "run"))
