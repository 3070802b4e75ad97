"""Routes by weights that are zero but for a choice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from modgraph.declare import Operand, Record, Role, Signature, own_module, product, setting, tokens
from modgraph.routers.router import Lowering, PoolFacts, PoolTypes, RecordsOf, Router, definition
from modgraph.types import Axis, Misfit, TensorType, require_distinct

# Of a module: in a scan, copying so many for every token is less than sorting tokens at every step.
FEW_WEIGHTS = 2**14
FEW_IN_BUNDLE = 2**12  # ONNX Runtime sorts in less time

GATHERED = "gathered"  # the form of a choice in which weights are taken by index
MASKED = "masked"  # the form of a choice in which every module runs
SELECTED = "modgraph.nn.message_passing.SelectedMessagePassing"
EVERY_EDGE = "modgraph.nn.message_passing.EveryEdgeMessagePassing"
OF_CHOICE = (
    Record("gates", "... N M", Role.GATES),
    Record("scores", "... N M", Role.SCORES),
    Record("selected", "... N M", Role.CHOICE),
)
OF_PAIRS = tuple(Operand(name, "... N M") for name in ("weights", "scores", "choice"))


def choice_forms(pool: PoolFacts) -> tuple[Lowering, ...]:
    """The forms that compute a route of which each token reaches some modules only, the best first."""
    sorted_ = "edges are sorted by module, and each module runs once, on its slice"
    each = "each module runs once, on the tokens that chose it"
    grouped = Lowering("grouped", "modgraph.nn.SelectedGrouped", sorted_, exportable=pool.in_scan)
    per_module = Lowering("per_module", "modgraph.nn.SelectedPerModule", each)
    every = "every module runs and is masked, selection saves nothing"
    masked = Lowering(MASKED, "modgraph.nn.SelectedMasked", every, exportable=False)
    reference = definition(SELECTED)
    every_module = () if pool.over_batch else (masked,)  # with other messages than its own, a module's results change
    if not pool.in_scan:
        return grouped, per_module, *every_module, reference
    rest = (*every_module, *(replace(form, exportable=False) for form in (per_module, reference)))
    if not pool.gathers:
        return (grouped, *rest)
    by_index = "the weights of the chosen modules are taken by index, at each step of the scan"
    few = pool.weights <= FEW_IN_BUNDLE
    gathered = Lowering(GATHERED, "modgraph.nn.SelectedGathered", by_index, exportable=few)
    return (gathered, grouped, *rest) if pool.weights <= FEW_WEIGHTS else (grouped, gathered, *rest)


class Chosen(Router, name="chosen", synonyms="hard_routing"):
    """Send each token to the modules of a choice, weighted; the weights beyond it count as zero.

    What `x -> pool by w` means where w is a value times a `top_k` over the modules, or a `masked_softmax` among them.
    A message of any rank is routed as one vector; so is its result.
    """

    example = (
        "input x: float[5, 6] pool p[3] = linear(4) s = x -> linear(p) "
        "w = (s, s -> top_k(2)) -> masked_softmax y = x -> p by w output y"
    )
    operands = (tokens("tokens"), *OF_PAIRS)
    module = own_module("k", "straight", "message_rank", "shows")
    masks = "... N"
    reference = SELECTED
    takes_one = True

    k: int = setting(1, min=1, doc="modules for each token")
    straight: bool = setting(False, doc="the gradient reaches the weights of what was not chosen too")
    shows: bool = setting(True, doc="record the choice; not where the router that made it does")

    records: ClassVar[Any] = RecordsOf(lambda router: OF_CHOICE if router.shows else (), otherwise=OF_CHOICE)

    def bind_pool(self, pool: PoolTypes, tokens: TensorType, *others: TensorType) -> Signature:
        outer = self.outer(pool, tokens)
        if self.chooses_along == "modules" and self.k > pool.size:
            reason = f'it selects k={self.k} of "{pool.name}", a pool of {pool.size}'
            raise Misfit(reason, "lower k, or raise the pool's size")
        pairs = others if outer else tuple(each.with_shape((1, *each.shape)) for each in others)
        flat = tokens.with_shape((*(outer or (1,)), _width(pool.message)))
        rank = len(pool.message.shape)
        signature = self.bind(flat, *pairs, M=pool.axis, V=_width(pool.result), message_rank=rank)
        value, *records = signature.results if outer else self._for_one(signature.results)
        value = value.with_shape(require_distinct((*value.shape[:-1], *pool.result.shape)))
        return replace(signature, operands=(tokens, *others), results=(value, *records))

    def active_modules(self, size: int) -> int:
        return self.k

    def deterministic(self) -> Router:
        return replace(self, straight=False)

    @property
    def reference_form(self) -> Lowering:
        return definition(EVERY_EDGE) if self.straight else super().reference_form

    def lowerings(self, pool: PoolFacts) -> tuple[Lowering, ...]:
        if not self.straight:  # gathering copies weights for each choice, which does not pay where all may be chosen
            return choice_forms(replace(pool, gathers=pool.gathers and self.k < pool.size))
        reason = "every module runs while a model learns: a straight-through gate's gradient reaches all of them"
        return (Lowering("dense", "modgraph.nn.SelectedDense", reason, exportable=False), self.reference_form)


class ChosenSenders(Chosen, name="chosen_senders", synonyms="expert_choice"):
    """Send to each module the k tokens of a choice, weighted; the weights beyond it count as zero.

    What `x -> pool by w` means where w is a value times a `top_k` over the tokens (expert choice: Zhou et al., 2022).
    """

    example = (
        "input x: float[5, 6] pool p[3] = linear(4) s = x -> linear(p) "
        "w = (s -> softmax) * (s -> top_k(2, axis=-2)) y = x -> p by w output y"
    )
    chooses_along = "senders"

    def active_modules(self, size: int) -> int:
        return size

    def active_messages(self, signature: Signature, size: int) -> int:
        return min(self.k, int(self.senders_in(signature))) * size

    def lowerings(self, pool: PoolFacts) -> tuple[Lowering, ...]:
        return super().lowerings(replace(pool, gathers=False))  # a token may be chosen by every module


def _width(type_: TensorType) -> Axis:
    """A message or a result as one axis. Raises `Misfit` if its size is not fixed."""
    if type_.padded:
        reason = f"a route along a choice needs messages and results of a fixed size, not {type_}"
        raise Misfit(reason, "give the axis a number in the input's type")
    return type_.shape[0] if len(type_.shape) == 1 else Axis(product(type_.shape))
