"""A pool without a router: every module takes part."""

from __future__ import annotations

from modgraph.declare import Operand, Signature, TorchModule, setting
from modgraph.routers.router import Lowering, PoolTypes, Router, check_padding
from modgraph.types import Axes, Misfit, TensorType, once_each


class EveryModule(Router):
    """Apply every module of a pool: what `x -> pool` means without a router.

    The result has an axis of modules before each message. A value that has that axis already is dealt row by row:
    module j gets row j.
    """

    name = "every_module"
    synonyms = ("all", "dense", "ensemble", "soft")
    example = "input x: float[5, 6] pool p[3] = linear(4) y = x -> p output y"
    operands = (Operand("tokens", "..."),)
    results = ("...",)
    module = TorchModule("modgraph.nn.EveryModule", "rows")
    reference = "modgraph.nn.EveryModuleRoute"
    one_for_each = "pair"
    chooses_along = None
    senders = False

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
        shape = once_each((*axes.lead, pool.axis, *pool.result.shape))
        return Signature(self, (tokens,), axes, (pool.result.with_shape(shape),))

    @property
    def reference_form(self) -> Lowering:
        reason = "the value has the axis of the modules: each runs on its own row"
        if not self.rows:
            reason = "every module runs, so there is nothing to choose"
        return Lowering("every_module", self.reference, reason)
