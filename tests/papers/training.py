"""Trains a paper for some steps on one batch."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from modgraph.backends.torch import Model


def train(model: Model, batch: Mapping[str, Tensor], optimizer: torch.optim.Optimizer, steps: int) -> list[float]:
    """Returns the loss before each step."""
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model.compute(batch).loss
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses
