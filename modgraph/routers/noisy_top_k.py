"""Noisy top-k gating (Shazeer et al., 2017; a baseline of Hu et al., ICLR 2024)."""

from __future__ import annotations

from dataclasses import replace

from modgraph.ops import ZEROS, Axes, Misfit, Operand, Signature, TensorType, TorchModule, Weight, setting
from modgraph.routers.router import Lowering, PoolFacts, PoolTypes, Router


class NoisyTopK(Router):
    """Send each token to the k modules with the largest logits, noise added in training.

    H = Wg x + ε · (softplus(Wn x) + 0.01), ε normal; the k largest are kept, of equal ones the first, and weighted by
    their softmax. With k = 1 that weight is one, so only balance losses train the router; `softmax="before_top_k"`
    weights by the softmax over all modules, which the task trains.
    """

    name = "noisy_top_k"
    example = "input x: float[5, 6] pool p[3] = linear(4) router r = noisy_top_k(k=2) y = x -> p by r output y"
    operands = (Operand("tokens", "... N D"),)
    results = ("... N V", "... N M", "... N M", "... N M", "... N M")
    records = ("gates", "scores", "selected", "load")
    weights = (Weight("weight", "M D", ZEROS), Weight("noise_weight", "M D", ZEROS))
    module = TorchModule("modgraph.nn.NoisyTopK", "D", "M", "k", noise="noise", softmax="softmax")
    reference = "modgraph.nn.SelectedMessagePassing"
    balanced = True

    k: int = setting(1, min=1, doc="modules for each token")
    noise: bool = setting(True, doc="add noise in training")
    softmax: str = setting("after_top_k", choices=("after_top_k", "before_top_k"), doc="over the chosen, or over all")

    def masked(self, axes: Axes) -> str | None:
        return axes["N"] if isinstance(axes["N"], str) else None

    def bind_pool(self, pool: PoolTypes, tokens: TensorType, *others: TensorType) -> Signature:
        if self.k > pool.size:
            reason = f'it selects k={self.k} of "{pool.name}", a pool of {pool.size}'
            raise Misfit(reason, "lower k, or raise the pool's size")
        return super().bind_pool(pool, tokens, *others)

    def macs(self, N: int, M: int, D: int) -> int:
        return N * D * M

    def active_modules(self, size: int) -> int:
        return self.k

    def deterministic(self) -> Router:
        return replace(self, noise=False)

    def lowerings(self, pool: PoolFacts) -> tuple[Lowering, ...]:
        reason = "each module runs once, on the tokens that chose it"
        forms = (Lowering("per_module", "modgraph.nn.SelectedPerModule", reason), self.reference_form)
        if not pool.in_scan:
            return forms
        per_module, reference = (replace(form, exports=False) for form in forms)
        return (per_module, *exported_in_scan(pool), reference)


def exported_in_scan(pool: PoolFacts) -> tuple[Lowering, ...]:
    """The forms for a bundle, which has one step of a scan for all: no size in it may depend on what is chosen."""
    reason = "every module runs and is masked, selection saves nothing: "
    reason += "in an exported scan modules are taken by index, and these cannot be"
    masked = Lowering("masked", "modgraph.nn.SelectedMasked", reason)
    if not pool.gathers:
        return (masked,)
    reason = "the weights of the chosen modules are taken by index, at each step of the scan"
    return (Lowering("gathered", "modgraph.nn.SelectedGathered", reason), masked)
