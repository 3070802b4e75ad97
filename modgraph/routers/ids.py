"""Routes by ids: each token names its modules, and no value has an axis of modules."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from modgraph.declare import Operand, Signature, own_module, setting, sizes
from modgraph.declare.indexing import Indexing, Reading, Use, everywhere, move_axes, place_at
from modgraph.routers.choice import FEW_WEIGHTS, GATHERED
from modgraph.routers.router import Lowering, PoolFacts, PoolTypes, Router, definition
from modgraph.types import Axes, Axis, Misfit, TensorType, format_shape, require_distinct, shapes_meet

MANY_MODULES = 64  # from here on, a bundle has no nodes for each module
FEW_GATHERED = 2**10  # weights of a module that take less time to copy for each token than tokens take to sort
NAMED_MODULES = 65_536  # with more, the weights of modules have no names of their own


class IdChoice(Router, name="chosen_ids"):
    """Send each token to the modules that ids name, times gates: y = Σ g_s f_id(s)(x) over slots s.

    `x -> pool by w` means this router if w is a product of gates and `one_hot` of ids, perhaps summed over slots. The
    last `slots` axes of ids and gates are summed, the others are those of the tokens.
    """

    example = (
        "input x: float[5, 6] pool p[3] = linear(4) best = x -> linear(p) -> top_k_indices(2) "
        "router r = chosen_ids(slots=1) y = x -> p by r(best, x -> linear(2) -> sigmoid) output y"
    )
    operands = (Operand("tokens", "..."), Operand("ids", "...", dtype="id"), Operand("gates", "..."))
    module = own_module("slots", "message_rank")
    reference = "modgraph.nn.message_passing.IdMessagePassing"
    token_axis = False

    slots: int = setting(0, min=0, doc="how many of the last axes of ids and gates are summed")

    def bind_pool(self, pool: PoolTypes, tokens: TensorType, *others: TensorType) -> Signature:
        outer = self.outer(pool, tokens)
        kinds = [(each.dtype == "float", each.size is not None, each.per) for each in others]
        if kinds != [(False, True, "example"), (True, False, "example")] or tokens.dtype != "float":
            reason = "it takes float tokens, the ids of their modules, and a gate for each id"
            raise Misfit(reason, f"write x -> {pool.name} by NAME(ids, gates)")
        ids, gates = others
        shape, own = ids.shape[: len(ids.shape) - self.slots], ids.shape[len(ids.shape) - self.slots :]
        if not shapes_meet(shape, outer) or not shapes_meet(gates.shape, ids.shape) or any(x.is_padded for x in own):
            reason = f"tokens {format_shape(outer)} have no ids {ids} with gates {format_shape(gates.shape)}"
            raise Misfit(reason, "give ids and gates the axes of tokens, then those of slots", 1)
        if (ids.size or 0) > pool.size:
            reason = f'"{pool.name}" is a pool of {pool.size}, and it is chosen by {ids}'
            raise Misfit(reason, f"divide the ids: ids % len({pool.name})", 1)
        axes = Axes(self)
        axes.lead = outer
        axes.bound |= {"N": 1, "places": own, "message_rank": len(pool.message.shape)}
        value = pool.result.with_shape(require_distinct((*outer, *pool.result.shape)))
        return Signature(self, (tokens, *others), axes, (value,))

    def list_masked_axes(self, signature: Signature) -> tuple[Axis, ...]:
        return signature.axes.lead or ()

    def indexing(self, use: Use) -> Indexing:
        """A token's value reads the results for this token, and its own ids and gates."""
        value, (_, ids, gates) = use.signature.results[0].shape, use.shapes
        rank = len(value) - len(ids) + self.slots  # of a module's result
        slots = {axis: everywhere(ids[axis]) for axis in range(-self.slots, 0)}
        readings = [Reading(0, tuple(map(place_at, range(-len(value), 0))))]
        for number, shape in ((1, ids), (2, gates)):
            readings.append(Reading(number, move_axes(shape, lambda axis: axis + self.slots - rank, slots)))
        return (tuple(readings),)

    def active_modules(self, size: int) -> int:
        return 1  # the number of slots is that of the ids

    def active_messages(self, signature: Signature, size: int) -> int:
        return prod(sizes(signature.axes["places"]))

    def lowerings(self, pool: PoolFacts) -> tuple[Lowering, ...]:
        by_index = "the weights of the modules that ids name are gathered by index"
        gathered = Lowering(GATHERED, "modgraph.nn.IdGathered", by_index)
        sorted_ = "edges are sorted by the ids of their modules, and each module runs once, on its slice"
        grouped = Lowering("grouped", "modgraph.nn.IdGrouped", sorted_, exportable=pool.in_scan)
        each = "each module runs once, on the tokens whose ids name it"
        per_module = Lowering("per_module", "modgraph.nn.IdPerModule", each, exportable=not pool.in_scan)
        reference = replace(definition(self.reference), exportable=not pool.in_scan)
        if not pool.gathers:
            return grouped, per_module, reference
        if pool.in_scan:
            ranked = [gathered, grouped] if pool.weights <= FEW_WEIGHTS else [grouped, gathered]
            return (*ranked, per_module, reference)
        if pool.size < MANY_MODULES or pool.weights > FEW_WEIGHTS:
            return grouped, per_module, gathered, reference
        few = pool.weights <= FEW_GATHERED or pool.size > NAMED_MODULES
        return (gathered, grouped, per_module, reference) if few else (grouped, gathered, per_module, reference)
