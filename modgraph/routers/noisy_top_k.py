"""Noisy top-k gating (Shazeer et al., 2017; a baseline of Hu et al., ICLR 2024)."""

from __future__ import annotations

from dataclasses import replace

from modgraph.declare import ZEROS, Record, Role, TorchModule, Use, Weight, setting
from modgraph.routers.on_tape import senders
from modgraph.routers.router import Router
from modgraph.routers.taped_choice import Choice
from modgraph.routers.top_k import TopK
from modgraph.tape import Value


class NoisyTopK(TopK):
    """Send each token to the k modules with the largest logits, noise added in training.

    H = Wg x + ε · (softplus(Wn x) + 0.01), ε normal; the k largest are kept, of equal ones the first, and weighted by
    their softmax. With k = 1 that weight is one, so only balance losses train the router; `softmax="before_top_k"`
    weights by the softmax over all modules, which the task trains. The load is smooth where noise is drawn; without,
    and in evaluation, it counts the tokens of each module.
    """

    name = "noisy_top_k"
    synonyms = ("top_k", "topk", "sparse", "moe")
    example = "input x: float[5, 6] pool p[3] = linear(4) router r = noisy_top_k(k=2) y = x -> p by r output y"
    records = (*TopK.records, Record("load", "... N M", Role.LOAD))
    weights = (Weight("weight", "M D", ZEROS), Weight("noise_weight", "M D", ZEROS))
    module = TorchModule("modgraph.nn.NoisyTopK", "D", "M", "k", noise="noise", softmax="softmax")

    noise: bool = setting(True, doc="add noise in training")
    softmax: str = setting("after_top_k", choices=("after_top_k", "before_top_k"), doc="over the chosen, or over all")

    def records_on_tape(self, use: Use, tokens: Value, pairs: float) -> tuple[Value, ...]:
        tape, (weight, noise_weight) = use.tape, use.weights.values()
        deviation = tape.function(tape.function(tape.product(pairs, tokens, noise_weight)), "nothing")
        scores = noisy = tape.product(pairs, tokens, weight)
        if self.noise:
            noisy = tape.add(pairs, scores, tape.times(pairs, tape.drawn(pairs), deviation))
        choice = Choice(tape, senders(use), pairs, scores, noisy)
        gates = choice.softmax_of_all() if self.softmax == "before_top_k" else choice.softmax_of_chosen()
        everything = self.k == use.axis("M") or not self.noise
        load = tape.drawn(pairs) if everything else choice.chance_to_stay(deviation)
        return gates, scores, tape.drawn(pairs), load

    def macs(self, N: int, M: int, D: int) -> int:
        return N * D * M

    def deterministic(self) -> Router:
        return replace(self, noise=False)
