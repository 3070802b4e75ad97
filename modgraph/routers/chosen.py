"""Routes by weights that are zero but for a choice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from modgraph.declare import Operand, Record, Role, Signature, TorchModule, Use, setting, tokens
from modgraph.routers.on_tape import TapedPool, chosen, senders
from modgraph.routers.router import Lowering, PoolFacts, PoolTypes, RecordsOf, Router, definition
from modgraph.routers.top_k import TopK
from modgraph.tape import FLAG, Value
from modgraph.types import TensorType

EVERY_EDGE = "modgraph.nn.message_passing.EveryEdgeMessagePassing"
OF_CHOICE = (
    Record("gates", "... N M", Role.GATES),
    Record("scores", "... N M", Role.SCORES),
    Record("selected", "... N M", Role.CHOICE),
)
OF_PAIRS = tuple(Operand(name, "... N M") for name in ("weights", "scores", "choice"))


class Chosen(TopK):
    """Send each token to the modules of a choice, weighted; the weights beyond it count as zero.

    What `x -> pool by w` means where w is a value times a `top_k` over the modules, or a `masked_softmax` among them.
    """

    name = "chosen"
    synonyms: ClassVar[tuple[str, ...]] = ("hard_routing",)
    example = (
        "input x: float[5, 6] pool p[3] = linear(4) s = x -> linear(p) "
        "w = (s, s -> top_k(2)) -> masked_softmax y = x -> p by w output y"
    )
    operands = (tokens("tokens"), *OF_PAIRS)
    module = TorchModule("modgraph.nn.Chosen", "k", "straight")
    balanced = False

    straight: bool = setting(False, doc="the gradient reaches the weights of what was not chosen too")
    shows: bool = setting(True, doc="record the choice; not where the router that made it does")

    records: ClassVar[Any] = RecordsOf(lambda router: OF_CHOICE if router.shows else (), otherwise=OF_CHOICE)

    def bind_pool(self, pool: PoolTypes, tokens: TensorType, *others: TensorType) -> Signature:
        if not self.outer(pool, tokens):
            others = tuple(each.with_shape((1, *each.shape)) for each in others)
        return super().bind_pool(pool, tokens, *others)

    def on_tape(self, use: Use, pool: TapedPool, form: str, tokens: Value, *others: Value) -> tuple[Value, ...]:
        tokens, (weights, scores, choice) = use.cleared(tokens), map(use.cleared, others)
        if self.straight:
            messages = pool.all(tokens, senders(use))
            weighted = use.tape.times(messages.count, messages, weights)
            return (use.tape.make(use.results[0], weighted), weights, scores, choice)[: len(use.results)]
        gates = use.tape.make(weights.count, weights, keeps_more=weights.count * FLAG)
        value = chosen(form, use, pool, tokens, gates, senders(use), self.reached(use, pool), self.k)
        return (value, gates, scores, choice)[: len(use.results)]

    def reached(self, use: Use, pool: TapedPool) -> float:
        """How many modules a sender reaches."""
        return self.k

    def deterministic(self) -> Router:
        return replace(self, straight=False)

    @property
    def reference_form(self) -> Lowering:
        return definition(EVERY_EDGE) if self.straight else super().reference_form

    def lowerings(self, pool: PoolFacts) -> tuple[Lowering, ...]:
        if not self.straight:
            return super().lowerings(pool)
        reason = "every module runs while a model learns: a straight-through gate's gradient reaches all of them"
        return (Lowering("dense", "modgraph.nn.SelectedDense", reason, exportable=False), self.reference_form)


class ChosenSenders(Chosen):
    """Send to each module the k tokens of a choice, weighted; the weights beyond it count as zero.

    What `x -> pool by w` means where w is a value times a `top_k` over the tokens (expert choice: Zhou et al., 2022).
    """

    name = "chosen_senders"
    synonyms = ("expert_choice",)
    example = (
        "input x: float[5, 6] pool p[3] = linear(4) s = x -> linear(p) "
        "w = (s -> softmax) * (s -> top_k(2, axis=-2)) y = x -> p by w output y"
    )
    chooses_along = "senders"

    def bind_pool(self, pool: PoolTypes, tokens: TensorType, *others: TensorType) -> Signature:
        return Router.bind_pool(self, pool, tokens, *others)

    def active_modules(self, size: int) -> int:
        return size

    def active_messages(self, signature: Signature, size: int) -> int:
        return min(self.k, int(self.senders_in(signature))) * size

    def reached(self, use: Use, pool: TapedPool) -> float:
        return min(1.0, self.k / float(use.axis("N"))) * pool.size

    def lowerings(self, pool: PoolFacts) -> tuple[Lowering, ...]:
        return super().lowerings(replace(pool, gathers=False))  # a token may be chosen by every module
