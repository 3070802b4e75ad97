"""Routes by weights that are zero outside a choice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from modgraph.declare import Operand, Record, Role, Signature, own_module, product, setting, tokens
from modgraph.declare.indexing import Indexing, Reading, Use, everywhere, move_axes, place_at, read_pointwise
from modgraph.routers.router import Lowering, PoolFacts, PoolTypes, RecordsOf, Router, definition
from modgraph.types import Axis, Misfit, TensorType, require_distinct

# In a scan, copying up to this many weights of a module for every token costs less than sorting tokens at every step.
FEW_WEIGHTS = 2**14
FEW_IN_BUNDLE = 2**12  # the same in ONNX Runtime, which sorts faster
MANY_IN_BUNDLE = 256  # modules; with so many, a node for each module is slow to export and to run

GATHERED = "gathered"  # the lowering that gathers weights by index
MASKED = "masked"  # the lowering that runs every module and masks
CHOICE = "modgraph.nn.message_passing.ChoiceMessagePassing"
EVERY_EDGE = "modgraph.nn.message_passing.EveryEdgeMessagePassing"
OF_CHOICE = (
    Record("gates", "... N M", Role.GATES),
    Record("scores", "... N M", Role.SCORES),
    Record("selected", "... N M", Role.CHOICE),
)
OF_PAIRS = tuple(Operand(name, "... N M") for name in ("weights", "scores", "choice"))


def list_choice_lowerings(pool: PoolFacts) -> tuple[Lowering, ...]:
    """The lowerings of a route on which each token reaches some modules, best first."""
    sorted_ = "edges are sorted by module, and each module runs once, on its slice"
    each = "each module runs once, on the tokens that chose it"
    grouped = Lowering("grouped", "modgraph.nn.ChoiceGrouped", sorted_, exportable=pool.in_scan)
    per_module = Lowering("per_module", "modgraph.nn.ChoicePerModule", each)
    every = "every module runs and is masked, the choice saves nothing"
    masked = Lowering(MASKED, "modgraph.nn.ChoiceMasked", every, exportable=False)
    reference = definition(CHOICE)
    every_module = () if pool.over_batch else (masked,)  # such a module's results depend on all its messages
    by_index = "the weights of the chosen modules are gathered by index" + " at each step of the scan" * pool.in_scan
    few = pool.weights <= FEW_IN_BUNDLE
    gathered = Lowering(GATHERED, "modgraph.nn.ChoiceGathered", by_index, exportable=few)
    if not pool.in_scan:
        many = (gathered,) if pool.gathers and few and pool.size >= MANY_IN_BUNDLE else ()
        return grouped, *many, per_module, *every_module, reference
    rest = (*every_module, *(replace(each, exportable=False) for each in (per_module, reference)))
    if not pool.gathers:
        return (grouped, *rest)
    return (gathered, grouped, *rest) if pool.weights <= FEW_WEIGHTS else (grouped, gathered, *rest)


class TokenChoice(Router, name="chosen", synonyms="hard_routing"):
    """Send each token to the modules of a choice, times its weights. Weights outside the choice count as zero.

    `x -> pool by w` means this router if w is a value times a `top_k` over the modules, or a `masked_softmax` over
    them. Messages and results of any rank are routed as vectors.
    """

    example = (
        "input x: float[5, 6] pool p[3] = linear(4) s = x -> linear(p) "
        "w = (s, s -> top_k(2)) -> masked_softmax y = x -> p by w output y"
    )
    operands = (tokens("tokens"), *OF_PAIRS)
    module = own_module("k", "straight", "message_rank", "record_choice")
    masks = "... N"
    reference = CHOICE
    takes_one = True

    k: int = setting(1, min=1, doc="number of modules per token")
    straight: bool = setting(False, doc="weights outside the choice get a gradient too")
    record_choice: bool = setting(True, doc="record the choice; false if the router that made it records it")

    records: ClassVar[Any] = RecordsOf(lambda router: OF_CHOICE if router.record_choice else (), otherwise=OF_CHOICE)

    def bind_pool(self, pool: PoolTypes, tokens: TensorType, *others: TensorType) -> Signature:
        outer = self.outer(pool, tokens)
        if self.chooses_along == "modules" and self.k > pool.size:
            reason = f'it selects k={self.k} of "{pool.name}", a pool of {pool.size}'
            raise Misfit(reason, "lower k, or raise the pool's size")
        pairs = others if outer else tuple(each.with_shape((1, *each.shape)) for each in others)
        flat = tokens.with_shape((*(outer or (1,)), _width(pool.message)))
        rank = len(pool.message.shape)
        signature = self.bind(flat, *pairs, M=pool.axis, V=_width(pool.result), message_rank=rank)
        value, *records = signature.results if outer else self._drop_token_axis(signature.results)
        value = value.with_shape(require_distinct((*value.shape[:-1], *pool.result.shape)))
        return replace(signature, operands=(tokens, *others), results=(value, *records))

    def indexing(self, use: Use) -> Indexing:
        """A token's value reads the results for this token and its own weights."""
        value = use.signature.results[0].shape
        rank = len(value) - len(use.shapes[1]) + 1  # of a module's result
        readings = [Reading(0, tuple(place_at(axis) for axis in range(-len(value), 0)))]
        for number, shape in enumerate(use.shapes[1:], start=1):
            readings.append(
                Reading(number, move_axes(shape, lambda axis: axis - rank + 1, {-1: everywhere(shape[-1])}))
            )
        return (tuple(readings), *read_pointwise(self, use)[1:])

    def active_modules(self, size: int) -> int:
        return self.k

    def deterministic(self) -> Router:
        return replace(self, straight=False)

    @property
    def reference_lowering(self) -> Lowering:
        return definition(EVERY_EDGE) if self.straight else super().reference_lowering

    def lowerings(self, pool: PoolFacts) -> tuple[Lowering, ...]:
        if not self.straight:  # gathering copies weights for each choice, which is a loss if k is the pool's size
            return list_choice_lowerings(replace(pool, gathers=pool.gathers and self.k < pool.size))
        reason = "every module runs while a model learns: a straight-through gate's gradient reaches all of them"
        return (Lowering("dense", "modgraph.nn.ChoiceDense", reason, exportable=False), self.reference_lowering)


class ExpertChoice(TokenChoice, name="chosen_senders", synonyms="expert_choice"):
    """Send each module the k tokens of a choice, times its weights. Weights outside the choice count as zero.

    `x -> pool by w` means this router if w is a value times a `top_k` over the tokens (expert choice: Zhou et al.,
    2022).
    """

    example = (
        "input x: float[5, 6] pool p[3] = linear(4) s = x -> linear(p) "
        "w = (s -> softmax) * (s -> top_k(2, axis=-2)) y = x -> p by w output y"
    )
    chooses_along = "senders"

    def active_modules(self, size: int) -> int:
        return size

    def active_messages(self, signature: Signature, size: int) -> int:
        return min(self.k, int(self.count_tokens(signature))) * size

    def lowerings(self, pool: PoolFacts) -> tuple[Lowering, ...]:
        return super().lowerings(replace(pool, gathers=False))  # several modules may choose one token


def _width(type_: TensorType) -> Axis:
    """The single axis of a flattened message or result. Raises `Misfit` if its size is not fixed."""
    if type_.padded:
        reason = f"a route along a choice needs messages and results of a fixed size, not {type_}"
        raise Misfit(reason, "give the axis a number in the input's type")
    return type_.shape[0] if len(type_.shape) == 1 else Axis(product(type_.shape))
