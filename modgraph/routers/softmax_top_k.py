"""Top-k routing by cosines or by a linear map (GMoE: Li et al., ICLR 2023, section 4.3)."""

from __future__ import annotations

import math
from dataclasses import replace

from modgraph.declare import Record, Role, TorchModule, Use, Weight, constant, normal, setting, uniform
from modgraph.routers.on_tape import senders
from modgraph.routers.router import Router
from modgraph.routers.taped_choice import Choice
from modgraph.routers.top_k import TopK
from modgraph.tape import FLAG, Value


class SoftmaxTopK(TopK):
    """Weight the chosen modules by the softmax over all of the noisy logits. Routers below it say what a logit is."""

    records = (
        *TopK.records,
        Record("load", "... N M", Role.LOAD),
        Record("probabilities", "... N M", Role.PROBABILITIES),
    )

    noise: float = setting(0.0, min=0, doc="standard deviation of the noise that training adds to the logits")
    load: str = setting(
        "paper", choices=("paper", "kth_of_others", "code"), doc="form of the load: how likely a token chooses a module"
    )
    capacity: float = setting(
        0.0, min=0, doc="in training a module takes at most this share of k · tokens / modules; 0: any number"
    )
    priority: str = setting(
        "score",
        choices=("score", "first_choice"),
        doc="who is served until the capacity is reached: a module's largest scores; or all first choices before any "
        "second one, each by the token's largest score",
    )

    def logits_on_tape(self, use: Use, tokens: Value, pairs: float) -> Value:
        """What is a linear map of the token, unless a router says otherwise."""
        return use.tape.product(pairs, tokens, *use.weights.values())

    def records_on_tape(self, use: Use, tokens: Value, pairs: float) -> tuple[Value, ...]:
        tape, scores = use.tape, self.logits_on_tape(use, tokens, pairs)
        noisy = tape.add(pairs, scores, tape.drawn(pairs)) if self.noise else scores
        choice = Choice(tape, senders(use), pairs, scores, noisy)
        gates = choice.softmax_of_all() if self.k == 1 else choice.softmax_of_chosen()
        if self.capacity:
            gates = tape.make(pairs, gates, keeps_more=pairs * FLAG)
        return gates, scores, tape.drawn(pairs), self._load_on_tape(choice), tape.function(scores, "result")

    def _load_on_tape(self, choice: Choice) -> Value:
        tape, pairs = choice.tape, choice.pairs
        if not self.noise:
            return tape.drawn(pairs)
        if self.load == "kth_of_others":
            return choice.chance_to_stay(tape.drawn(0))
        scores = tape.function(choice.scores, "result") if self.load == "code" else choice.scores
        off = tape.add(pairs, scores, choice.extreme())
        return choice.normal_cdf(tape.function(off, "nothing"))

    def deterministic(self) -> Router:
        return replace(self, noise=0.0, capacity=0.0)


class Cosine(SoftmaxTopK):
    """Send each token to the k modules whose keys have the largest cosine with the token's query.

    Logits are cos(W x + b, key_j) · exp(min(scale, log 100)), in training with noise; of equal ones the first is
    chosen. Gates are the softmax over all modules, with k > 1 renormalised to sum to one. Beyond a capacity of
    k · int(capacity · ⌈tokens / modules⌉) over the batch, tokens of the smallest scores are dropped: they get zero. The
    authors' code takes `priority="first_choice"` (batch prioritised routing), which is the same for k = 1.
    """

    name = "cosine"
    synonyms = ("gmoe",)
    example = "input x: float[5, 6] pool p[3] = linear(4) router r = cosine(k=2, width=4) y = x -> p by r output y"
    weights = (
        Weight("weight", "width D", uniform("D")),
        Weight("bias", "width", uniform("D")),
        Weight("keys", "width M", normal(0.01)),
        Weight("scale", "", constant(math.log(2))),
    )
    module = TorchModule(
        "modgraph.nn.CosineTopK",
        "D",
        "M",
        "k",
        width="width",
        noise="noise",
        load="load",
        capacity="capacity",
        priority="priority",
    )

    width: int = setting(256, min=1, doc="length of queries and keys")

    def logits_on_tape(self, use: Use, tokens: Value, pairs: float) -> Value:
        tape, S, (weight, bias, keys, scale) = use.tape, senders(use), use.weights.values()
        query = tape.unit(tape.product(S * self.width, tokens, weight, bias), S)
        cosine = tape.product(pairs, query, tape.unit(keys, use.axis("M")))
        return tape.times(pairs, cosine, tape.function(scale, "result"))

    def macs(self, N: int, M: int, D: int) -> int:
        return N * self.width * (D + M)


class Linear(SoftmaxTopK):
    """Send each token to the k modules with the largest logits W x, in training with noise.

    Gates, ties and capacity are those of `cosine`.
    """

    name = "linear"
    synonyms = ("switch", "softmax")
    example = "input x: float[5, 6] pool p[3] = scale router r = linear(k=1) y = x -> p by r output y"
    weights = (Weight("weight", "M D", uniform("D")),)
    module = TorchModule(
        "modgraph.nn.LinearTopK", "D", "M", "k", noise="noise", load="load", capacity="capacity", priority="priority"
    )

    def macs(self, N: int, M: int, D: int) -> int:
        return N * D * M
