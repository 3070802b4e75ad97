"""Digits as a user's own data set."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

SPEC = """
model digits(hidden=16) {
  input  image: float[1, 8, 8]
  target label: class[10]
  logits = image -> flatten -> linear(hidden) -> relu -> linear(10)
  output logits
  loss cross_entropy(logits, label)
}
"""
RECIPE: dict[str, Any] = {"train": {"epochs": 2, "batch": 50, "optimizer": {"name": "adam", "lr": 0.01}}}


@cache
def tensors() -> tuple[Tensor, Tensor]:
    """Images [600, 1, 8, 8] from 0 to 1, and their labels."""
    from sklearn.datasets import load_digits

    found = load_digits()
    return torch.tensor(found.images[:600, None] / 16, dtype=torch.float32), torch.tensor(found.target[:600])


class Digits(Dataset[Any]):
    """Some of the digits, each a dictionary by name, or a tuple."""

    def __init__(self, start: int, stop: int, as_tuples: bool = False) -> None:
        self.start, self.stop, self.as_tuples = start, stop, as_tuples

    def __len__(self) -> int:
        return self.stop - self.start

    def __getitem__(self, at: int) -> Any:
        images, labels = tensors()
        image, label = images[self.start + at], labels[self.start + at]
        return (image, label) if self.as_tuples else {"image": image, "label": label}


def own_data(as_tuples: bool = False) -> dict[str, Any]:
    """Digits to learn from and others to test on."""
    return {"train": Digits(0, 500, as_tuples), "test": Digits(500, 600, as_tuples)}
