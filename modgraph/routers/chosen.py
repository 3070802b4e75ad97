"""Routes by weights that are zero but for a choice."""

from __future__ import annotations

from modgraph.declare import Operand, Record, Role, Signature, TorchModule, Use, tokens
from modgraph.routers.on_tape import TapedPool, chosen, senders
from modgraph.routers.router import PoolTypes
from modgraph.routers.top_k import TopK
from modgraph.tape import FLAG, Value
from modgraph.types import TensorType

OF_PAIRS = tuple(Operand(name, "... N M") for name in ("weights", "scores", "choice"))


class Chosen(TopK):
    """Send each token to the modules of a choice, weighted; the weights beyond it count as zero.

    What `x -> pool by w` means where w is a value times a `top_k` over the modules, or a `masked_softmax` among them.
    """

    name = "chosen"
    synonyms = ("sparse", "hard_routing")
    example = (
        "input x: float[5, 6] pool p[3] = linear(4) s = x -> linear(p) "
        "w = (s, s -> top_k(2)) -> masked_softmax y = x -> p by w output y"
    )
    operands = (tokens("tokens"), *OF_PAIRS)
    records = (
        Record("gates", "... N M", Role.GATES),
        Record("scores", "... N M", Role.SCORES),
        Record("selected", "... N M", Role.CHOICE),
    )
    module = TorchModule("modgraph.nn.Chosen", "k")
    balanced = False

    def bind_pool(self, pool: PoolTypes, tokens: TensorType, *others: TensorType) -> Signature:
        if not self.outer(pool, tokens):
            others = tuple(each.with_shape((1, *each.shape)) for each in others)
        return super().bind_pool(pool, tokens, *others)

    def on_tape(self, use: Use, pool: TapedPool, form: str, tokens: Value, *others: Value) -> tuple[Value, ...]:
        tokens, (weights, scores, choice) = use.cleared(tokens), map(use.cleared, others)
        gates = use.tape.make(weights.count, weights, keeps_more=weights.count * FLAG)
        return chosen(form, use, pool, tokens, gates, senders(use), self.k, self.k), gates, scores, choice
