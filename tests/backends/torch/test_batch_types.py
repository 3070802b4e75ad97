"""What a model is given is held against the types of its spec, before anything is computed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

import modgraph
from modgraph.backends.torch import Model

TAGS = """
model tags() {
  input  words: token[time, 20]
  input  marks: float[time, 2]
  target tag: class[time, 3]
  x = (words -> embedding(4) -> position, marks) -> concat
  y = x -> linear(3)
  output y
  loss cross_entropy(y, tag, ignore=-7)
}
"""


@cache
def tags() -> Model:
    text = TAGS.replace(" -> position", "").replace("SIZE", "")
    return modgraph.loads(text).build().eval()


def batch(**other: Any) -> dict[str, Any]:
    ids = torch.arange(10).reshape(2, 5)
    found = {"words": ids, "marks": torch.ones(2, 5, 2), "tag": ids % 3, "time_length": torch.tensor([5, 3])}
    return {**found, **other}


FITS: dict[str, Callable[[], dict[str, Any]]] = {
    "plain": batch,
    "narrow ids": lambda: batch(words=torch.ones(2, 5, dtype=torch.uint8), tag=torch.ones(2, 5, dtype=torch.int32)),
    "no length": lambda: {name: value for name, value in batch().items() if name != "time_length"},
    "empty examples": lambda: batch(time_length=torch.tensor([0, 0])),
    "padding holds anything": lambda: batch(tag=torch.tensor([[0, 1, 2, 0, 1], [1, 2, 0, 99, -99]])),
    "ignored labels": lambda: batch(tag=torch.tensor([[0, -7, 2, 0, 1], [1, 2, 0, 1, 1]])),
}
WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "array": ({"marks": [[1.0]]}, TypeError, 'the input "marks" is float[time, 2]: a tensor is expected, not list'),
    "rank": ({"marks": torch.ones(2, 5)}, ValueError, "batch first: [B, time, 2] is expected, not [2, 5]"),
    "one example": ({"marks": torch.ones(5, 2)}, ValueError, "not [5, 2]; for one example: marks[None]"),
    "width": ({"marks": torch.ones(2, 5, 3)}, ValueError, "batch first: [B, time, 2] is expected, not [2, 5, 3]"),
    "batch": ({"marks": torch.ones(3, 5, 2)}, ValueError, 'not [3, 5, 2]: the batch is 2 in "words"'),
    "axis": ({"tag": torch.ones(2, 4).long()}, ValueError, 'not [2, 4]: time is 5 in "words"'),
    "whole numbers": (
        {"marks": torch.ones(2, 5, 2).int()},
        TypeError,
        "it takes floats, not torch.int32: marks.float()",
    ),
    "fractions": ({"words": torch.ones(2, 5)}, TypeError, "it takes whole numbers, not torch.float32: words.long()"),
    "flags": ({"tag": torch.ones(2, 5) > 0}, TypeError, "it takes whole numbers, not torch.bool"),
    "precision": ({"marks": torch.ones(2, 5, 2).double()}, TypeError, "the weights are torch.float32, and this is"),
    "id": ({"words": torch.full((2, 5), 20)}, ValueError, "its numbers are 0 to 19, and 20 is among them"),
    "label": ({"tag": torch.full((2, 5), -1)}, ValueError, "its numbers are 0 to 2, and -1 is among them"),
    "long": ({"time_length": torch.tensor([6, 1])}, ValueError, "its numbers are 0 to 5, and 6 is among them"),
    "negative": ({"time_length": torch.tensor([5, -1])}, ValueError, "its numbers are 0 to 5, and -1 is among them"),
    "lengths": ({"time_length": torch.tensor([5])}, ValueError, "batch first: [B] is expected, not [1]"),
    "name": ({"time_lengths": torch.tensor([5, 1])}, TypeError, 'no input and no target "time_lengths": did you mean'),
}


@pytest.mark.parametrize("what", FITS)
def test_what_fits_is_computed(what: str) -> None:
    computed = tags().compute(FITS[what]())
    assert computed.loss.isfinite(), what


@pytest.mark.parametrize("what", WRONG)
def test_what_does_not_fit_is_named_with_what_was_expected(what: str) -> None:
    other, error, words = WRONG[what]
    with pytest.raises(error) as caught:
        tags().compute(batch(**other))
    assert str(caught.value).startswith("tags") and words in str(caught.value)


def test_outputs_by_themselves_are_compared_with_types_too() -> None:
    """A convolution takes an image of any size: its logits would be of another model."""
    model = modgraph.load("specs/modular_networks_images.mod", size=8, modules=2, channels=2, hidden=3).build()
    ((name, type_),) = model.graph.input_types.items()
    with pytest.raises(ValueError, match=rf'the input "{name}" is .* is expected, not \[2, {type_.shape[0]}, 12, 12\]'):
        model(torch.randn(2, type_.shape[0].size or 1, 12, 12))


def test_learned_places_end_somewhere() -> None:
    model = modgraph.loads("model m() { input x: float[time, 4] y = x -> position(6) output y }").build()
    assert isinstance(model(torch.ones(2, 6, 4)), Tensor)
    with pytest.raises(ValueError, match=r"not .*: time is at most 6"):
        model(torch.ones(2, 7, 4))


def test_precisions_may_differ_where_torch_casts() -> None:
    model = modgraph.loads("model m() { input x: float[4] y = x -> linear(2) output y }").build()
    with torch.autocast("cpu", torch.bfloat16):
        assert isinstance(model(torch.ones(2, 4).bfloat16()), Tensor)


def test_missing_labels_are_no_mistake() -> None:
    text = TAGS.replace("ignore=-7", "missing=true").replace(" -> position", "")
    model = modgraph.loads(text).build()
    assert model.compute(batch(tag=torch.full((2, 5), -1))).loss == 0
