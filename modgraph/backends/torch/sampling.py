"""Samples the next token from logits."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from modgraph_runtime.generation import Sampling
from torch import Tensor

from modgraph.backends.torch.initial import make_generator


class Sampler(Sampling):
    """Samples the next token by torch, whose noise is not that of other runtimes."""

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
