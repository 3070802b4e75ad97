"""Samples the next token from logits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from modgraph.backends.torch.initial import make_generator


@dataclass(frozen=True)
class Sampler:
    """How the next token follows from its logits.

    Temperature 0 takes the most likely token, of equal ones the first. A higher one divides the logits; then only the
    `top_k` most likely tokens are left, and of these the fewest whose probabilities sum to `top_p` (nucleus sampling,
    Holtzman et al., 2020). Raises `ValueError` for values out of range.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(f"temperature must be 0 or more, not {self.temperature}")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k must be at least 1, not {self.top_k}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, not {self.top_p}")

    def sample(self, logits: Tensor, samples: Sequence[int], place: int) -> Tensor:
        """Sample a token for each row of logits [B, V]: [B].

        The noise of a row is a function of the seed, its number in `samples` and the place: other rows do not matter.
        """
        if not self.temperature:
            return logits.argmax(-1)
        found = self.narrow(logits.double() / self.temperature)
        draws = [make_generator(self.seed, "token", each, place) for each in samples]
        uniform = torch.stack([torch.rand(found.shape[-1], generator=each, dtype=torch.float64) for each in draws])
        return (found - (-uniform.log()).log().to(found.device)).argmax(-1)

    def narrow(self, logits: Tensor) -> Tensor:
        """Set the logits [B, V] of tokens that are left out to minus infinity."""
        order = logits.argsort(dim=-1, descending=True, stable=True)
        ranked = logits.gather(-1, order)
        kept = torch.ones_like(ranked, dtype=torch.bool)
        if self.top_k is not None:
            kept[..., self.top_k :] = False
        if self.top_p is not None:
            shares = ranked.masked_fill(~kept, -torch.inf).softmax(-1)
            kept &= shares.cumsum(-1) - shares < self.top_p
        return logits.masked_fill(~torch.zeros_like(kept).scatter(-1, order, kept), -torch.inf)
