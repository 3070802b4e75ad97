"""Routers that fill slots with modules, and what becomes of the slots' results (Kirsch et al., NeurIPS 2018).

Shape suffixes: N tokens, K slots, M modules; `...` any outer axes. A token is a message of any rank.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.chance import drawn_place
from modgraph.nn.padding import cleared
from modgraph.nn.pool import Gathered, Pool
from modgraph.nn.selected import (
    SelectedGathered,
    SelectedGrouped,
    SelectedMasked,
    SelectedPerModule,
)

IMPROBABLE = 1e4  # exp(−1e4) is zero


class SlotRecords(NamedTuple):
    gates: Tensor
    scores: Tensor
    selected: Tensor


class Slots(nn.Module, ABC):
    """What such routers have in common. A router says how probable each module is for each slot."""

    def __init__(self, modules: int, slots: int, rank: int, dedupe: bool) -> None:
        super().__init__()
        self.size = modules
        self.k = slots
        self.rank = rank
        self.dedupe = dedupe

    @abstractmethod
    def log_probabilities(self, tokens: Tensor) -> Tensor:
        """Tokens [..., N, message] give log p(module) [..., N, K, M]."""

    def forward(self, tokens: Tensor, choice: Tensor | None = None, real: Tensor | None = None) -> SlotRecords:
        """Gates [..., N, M], how many slots hold a module, and log-probabilities and choices [..., N, K, M].

        Padding gets zeros. In training modules are drawn, otherwise the most probable are taken; a choice [..., N, K]
        comes before either.
        """
        scores = self.log_probabilities(tokens)
        selected = F.one_hot(drawn_place(scores, choice, self.training), self.size).to(scores.dtype)
        gates = selected.amax(-2) if self.dedupe else selected.sum(-2)
        if real is None:
            return SlotRecords(gates, scores, selected)
        real_N = real.reshape(real.shape[: real.dim() - self.rank])
        mask_N1, mask_N11 = real_N.unsqueeze(-1), real_N[..., None, None]
        return SlotRecords(cleared(gates, mask_N1), cleared(scores, mask_N11), cleared(selected, mask_N11))


class Categorical(Slots):
    """A categorical distribution over modules for each slot, from a linear map of the token, or of a convolution's
    mean over the places of an image."""

    def __init__(
        self,
        modules: int,
        features: int,
        slots: int,
        rank: int,
        dedupe: bool = False,
        image: tuple[int, int, int] | None = None,
    ) -> None:
        """`image` gives the channels that come in, those of the convolution, and the width of its window."""
        super().__init__(modules, slots, rank, dedupe)
        self.conv = None
        if image is not None:
            channels_in, channels, kernel = image
            self.conv = nn.Conv2d(channels_in, channels, kernel, padding="same")
        self.weight = nn.Parameter(torch.empty(slots, modules, features))
        self.bias = nn.Parameter(torch.zeros(slots, modules))

    def log_probabilities(self, tokens: Tensor) -> Tensor:
        outer = tokens.shape[: tokens.dim() - self.rank]
        x = tokens.reshape(-1, *tokens.shape[tokens.dim() - self.rank :])
        features = x.flatten(1) if self.conv is None else F.relu(self.conv(x)).mean((-2, -1))
        logits = F.linear(features, self.weight.flatten(0, 1), self.bias.flatten())
        return logits.reshape(*outer, self.k, self.size).log_softmax(-1)


class Fixed(Slots):
    """Slot k always holds module k."""

    def log_probabilities(self, tokens: Tensor) -> Tensor:
        log_KM = (torch.eye(self.k, self.size, dtype=tokens.dtype, device=tokens.device) - 1) * IMPROBABLE
        return log_KM.expand(*tokens.shape[: tokens.dim() - self.rank], -1, -1)


class InSlots(nn.Module):
    """A route whose value is the results of the slots side by side, in a form for single choices: each slot is a
    sender of its own."""

    form: type[nn.Module]

    def __init__(self) -> None:
        super().__init__()
        self.inner = self.form()

    def forward(
        self,
        tokens: Tensor,
        pool: Pool | Gathered,
        router: nn.Module,
        *others: Tensor,
        real: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        """Tokens [..., N, message] give results [..., N, K·first axis, ...], and the router's records."""
        tokens = cleared(tokens, real)
        records: SlotRecords = router(tokens, *others, real=real)
        outer = records.selected.shape[:-1]  # [..., N, K]
        message = tokens.shape[tokens.dim() - pool.rank :]
        each = tokens.unsqueeze(-pool.rank - 1).expand(*outer, *message)
        senders = each.flatten(len(outer) - 2, len(outer) - 1)
        values = self.inner(senders, pool, _GivenChoice(records.selected.flatten(-3, -2)))[0]
        side_by_side = values.reshape(*outer, *values.shape[len(outer) - 1 :]).flatten(len(outer) - 1, len(outer))
        return side_by_side, *records


class _GivenChoice(nn.Module):
    """A router that has chosen already: one module for each sender."""

    k = 1

    def __init__(self, selected: Tensor) -> None:
        super().__init__()
        self.selected = selected

    def forward(self, tokens: Tensor, real: Any = None) -> SlotRecords:
        return SlotRecords(self.selected, self.selected, self.selected)


class SlotsGrouped(InSlots):
    """Slots sorted by module, each module once on its slice."""

    form = SelectedGrouped


class SlotsPerModule(InSlots):
    """Each module once, on the slots that hold it."""

    form = SelectedPerModule


class SlotsMasked(InSlots):
    """Every module in every slot, weighted by zero where another is chosen."""

    form = SelectedMasked


class SlotsGathered(InSlots):
    """The weights of the chosen modules taken by index."""

    form = SelectedGathered

    @staticmethod
    def prepared(pool: Pool) -> Gathered:
        """What all steps of a scan have in common: the stacked weights."""
        return SelectedGathered.prepared(pool)
