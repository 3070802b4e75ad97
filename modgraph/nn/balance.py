"""Even use of modules over the whole batch, without gradient. Axis letters: S tokens of the batch, M modules."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from modgraph.nn.along_axis import AlongAxis
from modgraph.nn.choice import TopKMask
from modgraph.nn.padding import apply_mask
from modgraph.nn.shard import own_rows, whole_batch

HEATS = tuple(2.0**-stage for stage in range(7))  # temperatures of an assignment, relative to the scores' deviation


def correct(scores_SM: Tensor, there_S: Tensor, iterations: int, bias_M: Tensor, room: Tensor | None = None) -> Tensor:
    """The corrections [M], in logarithms and from given ones, by which tokens in the mask use all modules evenly.

    With more `room` in each module than an even share, as many further tokens prefer no module.
    """
    modules = scores_SM.shape[-1]
    least, tokens = torch.finfo(scores_SM.dtype).min, there_S.sum().to(scores_SM.dtype)
    wanted = tokens / modules if room is None else room.to(scores_SM.dtype)
    further = (wanted * modules - tokens).log()
    for _ in range(iterations):
        shares_SM = (scores_SM + bias_M).log_softmax(-1).masked_fill(~there_S.unsqueeze(-1), least)
        used_M = torch.logaddexp(shares_SM.logsumexp(0), further + bias_M.log_softmax(-1))
        bias_M = bias_M + torch.where(tokens > 0, wanted.log() - used_M, 0.0)
    return bias_M


def assign(scores_SM: Tensor, there_S: Tensor, iterations: int) -> Tensor:
    """Assign each token in the mask to one module, of which each takes at most ⌈tokens / modules⌉: [S, M] of bool."""
    modules, there_SM = scores_SM.shape[-1], there_S.unsqueeze(-1)
    tokens = there_S.sum().clamp(min=1)
    room = (tokens + modules - 1) // modules
    mean = apply_mask(scores_SM, there_SM).sum() / (tokens * modules)
    spread = (apply_mask(scores_SM - mean, there_SM) ** 2).sum().div(tokens * modules).sqrt()
    scores_SM, bias_M = scores_SM / torch.where(spread == 0, 1.0, spread), scores_SM.new_zeros(modules)
    for heat in HEATS:
        bias_M = heat * correct(scores_SM / heat, there_S, iterations, bias_M / heat, room)
    return fill(scores_SM + bias_M, there_S, room)


def fill(scores_SM: Tensor, there_S: Tensor, room: Tensor) -> Tensor:
    """Give each token its best module with room, those first that would lose most by another: [S, M] of bool.

    In each round at least one module becomes full, or no token is left.
    """
    taken_SM, open_M = (
        torch.zeros_like(scores_SM, dtype=torch.bool),
        torch.ones_like(scores_SM[:1], dtype=torch.bool)[0],
    )
    waiting_S = there_S
    is_readable = scores_SM.device.type == "cpu" and not torch.compiler.is_compiling()  # elsewhere a read waits
    for _ in range(scores_SM.shape[-1]):
        if is_readable and not waiting_S.any():
            break
        best = scores_SM.masked_fill(~open_M, -math.inf).topk(min(2, scores_SM.shape[-1]))
        loss_S = (best.values[:, 0] - best.values[:, -1]).masked_fill(~waiting_S, -math.inf)
        order_S = loss_S.argsort(descending=True, stable=True)
        wanted_SM = torch.zeros_like(taken_SM).scatter(1, best.indices[:, :1], waiting_S.unsqueeze(-1))[order_S]
        fits_SM = wanted_SM & (wanted_SM.cumsum(0) <= room - taken_SM.sum(0))
        taken_SM = taken_SM | torch.zeros_like(taken_SM).index_copy(0, order_S, fits_SM)
        waiting_S, open_M = there_S & ~taken_SM.any(1), taken_SM.sum(0) < room
    return taken_SM


class _Balanced(AlongAxis):
    """Base of modules whose result in training depends on all tokens of the batch."""

    iterations: int

    def gather(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """The scores of all tokens of the whole batch [..., M], modules last, and which are no padding [...]."""
        there = torch.ones_like(x, dtype=torch.bool) if mask is None else mask.expand_as(x)
        scores, there = (whole_batch(each).movedim(self.axis, -1) for each in (apply_mask(x.detach(), mask), there))
        return scores, there.any(-1)


class Sinkhorn(_Balanced):
    """log softmax along an axis of modules; in training corrected so that tokens use all of them evenly."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if not self.training:
            return x.log_softmax(self.axis)
        scores, there = self.gather(x, mask)
        bias_M = x.new_zeros(scores.shape[-1])
        bias_M = correct(scores.flatten(0, -2), there.flatten(), self.iterations, bias_M)
        return (x.movedim(self.axis, -1) + bias_M).log_softmax(-1).movedim(-1, self.axis)


class BalancedAssignment(_Balanced):
    """One at the module that each token is assigned to, else zero."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if not self.training:
            best: Tensor = TopKMask(self.axis, 1)(x, mask)
            return best
        scores, there = self.gather(x, mask)
        found = assign(scores.flatten(0, -2), there.flatten(), self.iterations).reshape(scores.shape)
        choice: Tensor = own_rows(found.movedim(-1, self.axis), x).to(x.dtype)
        return choice
