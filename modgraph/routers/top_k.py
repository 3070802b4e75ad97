"""What routers have in common that send each token to its k best modules."""

from __future__ import annotations

from modgraph.ops import Axes, Misfit, Operand, Signature, TensorType, setting
from modgraph.routers.router import Lowering, PoolFacts, PoolTypes, Router


class TopK(Router):
    """Send each token to the k modules with the largest scores. Routers below it say what a score is."""

    operands = (Operand("tokens", "... N D"),)
    reference = "modgraph.nn.SelectedMessagePassing"
    balanced = True

    k: int = setting(1, min=1, doc="modules for each token")

    def masked(self, axes: Axes) -> str | None:
        return axes["N"] if isinstance(axes["N"], str) else None

    def bind_pool(self, pool: PoolTypes, tokens: TensorType, *others: TensorType) -> Signature:
        if self.k > pool.size:
            reason = f'it selects k={self.k} of "{pool.name}", a pool of {pool.size}'
            raise Misfit(reason, "lower k, or raise the pool's size")
        return super().bind_pool(pool, tokens, *others)

    def active_modules(self, size: int) -> int:
        return self.k

    def lowerings(self, pool: PoolFacts) -> tuple[Lowering, ...]:
        sorted_ = "edges are sorted by module, and each module runs once, on its slice"
        each = "each module runs once, on the tokens that chose it"
        return (
            Lowering("grouped", "modgraph.nn.SelectedGrouped", sorted_, exportable=False),
            Lowering("per_module", "modgraph.nn.SelectedPerModule", each),
            self.reference_form,
        )
