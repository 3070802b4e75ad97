"""Data sets of one's own: dictionaries, tuples and whole arrays, checked by name against the spec."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import modgraph
from modgraph.data.in_python import InPython
from tests.api.digits import RECIPE, SPEC, Digits, own_data, tensors
from tests.small_runs import final_weights

TEXT = """
model tagger {
  input  words: token[time, 9]
  target tag: class[time, 3]
  logits = words -> embedding(4) -> linear(3)
  output logits
  loss cross_entropy(logits, tag)
}
"""


class Stream(IterableDataset[Any]):
    """The same digits, one after another."""

    def __iter__(self) -> Iterator[Any]:
        yield from (Digits(0, 500)[at] for at in range(500))


def train_on(data: Any, out: Path) -> bytes:
    return final_weights(modgraph.train(modgraph.loads(SPEC), RECIPE, data={"train": data}, out=out).path)


def test_every_kind_of_one_data_set_trains_the_same(tmp_path: Path) -> None:
    images, labels = tensors()
    kinds = {
        "dictionaries": Digits(0, 500),
        "tuples": Digits(0, 500, as_tuples=True),
        "tensors": TensorDataset(images[:500], labels[:500]),
        "a list": [Digits(0, 500)[at] for at in range(500)],
        "a stream": Stream(),
        "whole arrays": {"image": images[:500].numpy(), "label": labels[:500]},
        "doubles": {"image": images[:500].double(), "label": labels[:500].int()},
    }
    weights = {name: train_on(data, tmp_path / name) for name, data in kinds.items()}
    assert {name for name, each in weights.items() if each != weights["dictionaries"]} == set()


def test_examples_of_unequal_lengths_are_padded_and_their_lengths_known() -> None:
    graph = modgraph.loads(TEXT).ir
    examples = [{"words": [1, 2, 3], "tag": [0, 1, 2]}, {"words": [4], "tag": [1]}]
    (arrays,) = InPython.from_splits({"train": examples}).splits(graph).values()
    assert arrays.values["words"].tolist() == [[1, 2, 3], [4, 0, 0]]
    assert arrays.values["time_length"].tolist() == [3, 1]
    batch = {name: torch.from_numpy(each) for name, each in arrays.values.items()}
    padded = modgraph.loads(TEXT).build().compute(batch).losses["loss.cross_entropy"]
    separate = [
        modgraph.loads(TEXT).build().compute({name: torch.tensor([value]) for name, value in each.items()}).loss
        for each in examples
    ]
    assert padded.item() == pytest.approx(torch.stack(separate).mean().item(), rel=1e-5), "padding counts nowhere"


def test_a_data_set_is_read_once() -> None:
    reads = []

    class Counting(Digits):
        def __getitem__(self, at: int) -> Any:
            reads.append(at)
            return super().__getitem__(at)

    data = InPython.from_splits({"train": Counting(0, 5)})
    for _ in range(2):
        data.splits(modgraph.loads(SPEC).ir)
    assert reads == [0, 1, 2, 3, 4]


IMAGES = np.zeros((4, 1, 8, 8), np.float32)
LABELS = np.arange(4)
WRONG = {
    "a misspelt name": ([{"imag": IMAGES[0], "label": 0}], '"imag".*did you mean "image"'),
    "a missing name": ([{"image": IMAGES[0]}], r'train\[0\] has no "label" for class\[10\]; it has: image'),
    "a wrong shape": ([(IMAGES[0, 0], 0)], r"has the shape \[8, 8\].*needs \[1, 8, 8\].*image\[None\]"),
    "channels last": ([(np.zeros((8, 8, 1)), 0)], "put the channels first"),
    "too many values": ([(IMAGES[0], 0, 1)], r"train\[0\] has 3 values, and the spec 2 inputs and targets"),
    "another shape later": (
        [(IMAGES[0], 0), (IMAGES[0, :, :4], 1)],
        r'train\[1\]\["image"\] has the shape \[1, 4, 8\]',
    ),
    "classes beyond": ([(IMAGES[0], 10)], r"allows 0 to 9"),
    "labels of floats": ([(IMAGES[0], 0.5)], "not whole numbers"),
    "not finite": ([(IMAGES[0] * np.nan, 1)], "infinite, NaN"),
    "no examples": ([], "train has no examples"),
    "arrays of unequal lengths": ({"image": IMAGES, "label": LABELS[:3]}, "has 3 examples, but"),
}


@pytest.mark.parametrize("what", WRONG)
def test_data_that_do_not_fit_are_refused_by_name_before_training(what: str, tmp_path: Path) -> None:
    data, expected = WRONG[what]
    with pytest.raises(modgraph.ModgraphError, match=f"(?s){expected}"):
        modgraph.train(modgraph.loads(SPEC), RECIPE, data={"train": data}, out=tmp_path / "run")
    assert not [*tmp_path.glob("run/*.mod")], "no run was begun"


KINDS = {
    "a loader": (lambda: DataLoader(Digits(0, 5)), "loader.dataset"),
    "a path": (lambda: "digits.npz", "is a str"),
    "words": (lambda: [(IMAGES[0], "seven")], "numbers are needed"),
    "a number": (lambda: 3, "is a int"),
}


@pytest.mark.parametrize("what", KINDS)
def test_what_is_no_data_set_is_a_type_error(what: str, tmp_path: Path) -> None:
    make, expected = KINDS[what]
    with pytest.raises(TypeError, match=expected):
        modgraph.train(modgraph.loads(SPEC), RECIPE, data={"train": make()}, out=tmp_path / "run")


def test_there_must_be_data_to_learn_from(tmp_path: Path) -> None:
    with pytest.raises(modgraph.ModgraphError, match='data must have "train", not only test'):
        modgraph.train(modgraph.loads(SPEC), RECIPE, data={"test": own_data()["test"]}, out=tmp_path / "run")
    with pytest.raises(TypeError, match="data sets by split"):
        modgraph.train(modgraph.loads(SPEC), RECIPE, data=Digits(0, 5), out=tmp_path / "run")  # type: ignore[arg-type]
