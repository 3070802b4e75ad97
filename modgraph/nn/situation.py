"""What differs between learning and use."""

from __future__ import annotations

from torch import Tensor, nn


class StopGradient(nn.Module):
    """The value itself, through which no gradient flows."""

    def forward(self, x: Tensor) -> Tensor:
        return x.detach()


class TrainingOrInference(nn.Module):
    """The first value in training, the second otherwise."""

    def forward(self, training: Tensor, inference: Tensor) -> Tensor:
        return training if self.training else inference
