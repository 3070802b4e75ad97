"""Weighted routes, the one primitive of routing, and pools without a router, where every module takes part or
one that the text names."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from modgraph.declare import Operand, Signature, axis_setting, own_module, position_of, setting, sizes
from modgraph.declare.indexing import Indexing, Reading, Use, follow_equation, place_at, read_everything, read_pointwise
from modgraph.routers.router import Lowering, PoolFacts, PoolTypes, Router, check_padding
from modgraph.types import Axes, Axis, Misfit, Shape, TensorType, format_shape, may_meet, meet_axes, require_distinct

MODULE = "m"  # the letter of the axis of modules; other axes get other letters


class EveryModule(Router, name="every_module", synonyms="all dense ensemble soft"):
    """Apply every module of a pool: `x -> pool` without a router.

    The result has an axis of modules before each message. If the value already has that axis, module j gets row j.
    """

    example = "input x: float[5, 6] pool p[3] = linear(4) y = x -> p output y"
    operands = (Operand("tokens", "..."),)
    results = ("...",)
    module = own_module("rows")
    reference = "modgraph.nn.EveryModuleRoute"
    one_for_each = "pair"
    chooses_along = None
    token_axis = False

    rows: bool = setting(False, doc="the value has an axis of modules: module j gets row j")

    def bind_pool(self, pool: PoolTypes, tokens: TensorType, *others: TensorType) -> Signature:
        split = len(self.outer(pool, tokens))
        check_padding(pool, tokens.shape[:split])
        axes = Axes(self)
        axes.bound["N"] = 1
        if self.rows and (not split or tokens.shape[split - 1] != pool.axis):
            reason = f'rows=true deals {tokens} row by row, and it has no axis of the modules of "{pool.name}"'
            raise Misfit(reason, "leave rows out: every module then takes the whole value", 0)
        axes.lead = tokens.shape[: split - self.rows]
        shape = require_distinct((*axes.lead, pool.axis, *pool.result.shape))
        return Signature(self, (tokens,), axes, (pool.result.with_shape(shape),))

    def indexing(self, use: Use) -> Indexing:
        """Module j reads every token, or only row j."""
        (shape,) = use.signature.results
        outer = len(use.signature.axes.lead or ()) + self.rows
        places = [place_at(axis) for axis in range(-len(shape.shape), 0)]
        return ((Reading(0, (*places[:outer], *places[outer + (not self.rows) :])),),)

    @property
    def reference_lowering(self) -> Lowering:
        reason = "the value has the axis of the modules: each runs on its own row"
        if not self.rows:
            reason = "every module runs, so there is nothing to choose"
        return Lowering("every_module", self.reference, reason)


class OneModule(Router, name="one_module", synonyms="shared_expert member"):
    """Apply one module of a pool to every message: `x -> expert[0]`. The others do not run."""

    example = "input x: float[5, 6] pool p[3] = linear(4) router first = one_module(0) y = x -> p by first output y"
    operands = (Operand("tokens", "..."),)
    results = ("...",)
    module = own_module("index")
    reference = "modgraph.nn.OneModuleRoute"
    chooses_along = None
    token_axis = False

    index: int = setting(min=0, doc="the module, from 0")

    def bind_pool(self, pool: PoolTypes, tokens: TensorType, *others: TensorType) -> Signature:
        outer = self.outer(pool, tokens)
        check_padding(pool, outer)
        if self.index >= pool.size:
            reason = f'the pool "{pool.name}" has no module {self.index}, only {pool.size}'
            raise Misfit(reason, f"the last is {pool.name}[{pool.size - 1}]")
        axes = Axes(self)
        axes.bound["N"], axes.lead = 1, outer
        return Signature(self, (tokens,), axes, (pool.result.with_shape((*outer, *pool.result.shape)),))

    def indexing(self, use: Use) -> Indexing:
        return read_pointwise(self, Use(replace(use.signature, operands=use.signature.results)))

    def active_modules(self, size: int) -> int:
        return 1

    @property
    def reference_lowering(self) -> Lowering:
        return Lowering("one_module", self.reference, "the text names the module, so no other runs")


class Weighted(Router, name="weighted", synonyms="weighted_sum soft_routing"):
    """Send a value through modules and sum over an axis of the weights: y = Σ_over w ⊙ f_j(x).

    Over the pool's axis, each token gets a weighted sum of the modules' results. Over an axis of tokens, each module
    gets a weighted sum of its messages. Axes of the weights align with those of the value: by name, or plain ones by
    their order from the last. Other axes of the weights follow those of the value; weights broadcast along axes that
    they lack. If the pool's axis is the value's last before a message, module j takes row j. Padding counts as zero.
    MACs count the products with weights only where tokens are summed. Passes give `messages`, f_j(x), to compute them
    once for several routes.
    """

    example = "input x: float[5, 6] pool p[3] = linear(4) w = x -> linear(p) -> softmax y = x -> p by w output y"
    operands = (Operand("tokens", "..."), Operand("weights", "..."), Operand("messages", "...", optional=True))
    module = own_module("tokens_", "weights_", "over_", "result_", "rows_")
    reference = "modgraph.nn.message_passing.WeightedMessagePassing"
    one_for_each = "pair"
    chooses_along = None
    token_axis = False
    masks_each = True

    over: int | str = axis_setting(-1)

    def bind_pool(self, pool: PoolTypes, tokens: TensorType, *others: TensorType) -> Signature:
        if len(others) not in (1, 2) or any(each.dtype != "float" or each.per == "batch" for each in (tokens, *others)):
            of_ids = any(each.size is not None for each in others)
            advice = f"make weights of ids: words % len({pool.name}) -> one_hot({pool.name})"
            reason = "it takes two float values, tokens and their weights"
            raise Misfit(reason, advice if of_ids else "write x -> pool by w")
        weights, *messages = others
        axes, outer = Axes(self), self.outer(pool, tokens)
        check_padding(pool, outer)
        rows = outer[-1:] == (pool.axis,)
        axes.lead, axes.bound["N"], axes.bound["rows_"] = outer[: len(outer) - rows], 1, rows
        first, second, named = self._align(pool, axes.lead, weights)
        over = second[position_of(self.over, weights, "by w over")]
        if over == MODULE and self.over != pool.axis.name:
            raise Misfit("its modules are summed by their axis' name", f'write over "{pool.axis.name}"')
        if over not in (*first, MODULE):
            reason = f'neither the value nor the pool "{pool.name}" has the axis {named[over]} of the weights'
            raise Misfit(reason, "sum the weights over it first: w -> sum(axis=…)", 1)
        # the axes of tokens, then those of the weights, then the axis of modules if the weights lack it
        result = [letter for letter in dict.fromkeys((*first, *second, MODULE)) if letter != over]
        axes.bound |= {"tokens_": "".join(first), "weights_": "".join(second), "over_": over}
        axes.bound |= {"result_": "".join(result), "message": pool.result.shape}
        axes.bound["summed"] = tuple(named[letter] for letter in result if letter not in first)
        kept = tuple(named[letter] for letter in result)
        value = pool.result.with_shape(require_distinct((*kept, *pool.result.shape)))
        # `messages` are f_j(x) of all tokens, or f_j(0)
        fits = [require_distinct((*before, *pool.result.shape)) for before in ((*axes.lead, pool.axis), (pool.axis,))]
        if messages and messages[0].shape not in fits[: 1 + (self.over != pool.axis.name)]:
            raise Misfit(f"its messages are the modules' results, {format_shape(fits[0])}, not {messages[0]}", "", 2)
        return Signature(self, (tokens, *others), axes, (value,))

    def _align(
        self, pool: PoolTypes, tokens: Shape, weights: TensorType
    ) -> tuple[list[str], list[str], dict[str, Axis]]:
        """Assign letters to the axes of tokens and of weights, equal for aligned axes; return also the axes by letter.

        Raises `Misfit`.
        """
        if self.over == pool.axis.name and pool.axis not in weights.shape:
            reason = f'the weights {format_shape(weights.shape)} have no axis of the modules of "{pool.name}"'
            raise Misfit(reason, f"make one, x -> linear({pool.name}), or name the axis to sum: by w over AXIS", 1)
        if pool.axis in tokens:
            raise Misfit(f"the axis {pool.axis} must stand last before a message, to be dealt row by row", operand=0)
        free = iter(ascii_lowercase.replace(MODULE, ""))
        first = [next(free) for _ in tokens]
        named = dict(zip(first, tokens, strict=True))
        plain = [letter for letter, axis in named.items() if not axis.name]
        second: list[str] = []
        for axis in reversed(weights.shape):
            letter = MODULE if axis == pool.axis else ""
            if axis.name and not letter:
                letter = next((each for each in first if named[each] == axis), "")
            elif plain and not letter:
                if not may_meet(named[plain[-1]], axis):
                    reason = f"the weights have an axis of length {axis}, and the value one of {named[plain[-1]]}"
                    raise Misfit(reason, f"weights for {format_shape(tokens)} begin with these axes", 1)
                letter = plain.pop()
            second.insert(0, letter)
        named[MODULE] = pool.axis
        for at, axis in enumerate(weights.shape):
            second[at] = second[at] or next(free)
            named[second[at]] = meet_axes(named.get(second[at], axis), axis)
        return first, second, named

    def list_masked_axes(self, signature: Signature) -> tuple[Axis, ...]:
        return (*(signature.axes.lead or ()), *signature.operands[1].shape)

    def indexing(self, use: Use) -> Indexing:
        """A sum of products of weights and results."""
        if len(use.shapes) > 2:
            return read_everything(self, use)
        axes = use.signature.axes
        tokens, weights, result = axes["tokens_"] + MODULE * axes["rows_"], axes["weights_"], axes["result_"]
        rank = len(use.signature.results[0].shape) - len(result)  # of a module's result
        message = ascii_uppercase[:rank]
        outer = (*(axes.lead or ()), *(use.shapes[0][len(tokens) - 1 : len(tokens)] * axes["rows_"]))
        known = dict(zip((*tokens, *weights), (*outer, *use.shapes[1]), strict=True))
        places = follow_equation((tokens + message, weights), result + message, known)
        return (tuple(Reading(number, each, guards=True) for number, each in enumerate(places)),)

    def macs(self, over_: str, summed: Any, message: Any) -> int:
        return 0 if over_ == MODULE else prod(sizes((*summed, *message)))

    def lowerings(self, pool: PoolFacts) -> tuple[Lowering, ...]:
        reason = "every module runs on every token, and their results are summed"
        dense = Lowering("dense", "modgraph.nn.WeightedDense", reason)
        if not pool.affine or self.over == pool.axis:
            return (dense, self.reference_lowering)
        reason = "the modules are affine, so tokens are summed before the modules run"
        factorised = Lowering("factorised", "modgraph.nn.WeightedFactorised", reason)
        return (factorised, dense, self.reference_lowering)
