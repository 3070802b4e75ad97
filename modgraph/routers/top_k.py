"""What routers have in common that send each token to its k best modules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from modgraph.declare import Operand, Record, Role, Signature, setting, tokens
from modgraph.routers.router import Lowering, PoolFacts, PoolTypes, Router, definition
from modgraph.types import Axis, Misfit, TensorType

# Of a module: in a scan, copying so many for every token is less than sorting tokens at every step.
FEW_WEIGHTS = 2**14
FEW_IN_BUNDLE = 2**12  # ONNX Runtime sorts in less time


@dataclass(frozen=True)
class ChoiceForms:
    """The torch modules that compute a route along what was chosen, by the form that each is."""

    message_passing: str
    grouped: str
    per_module: str
    gathered: str
    masked: str


SELECTED = ChoiceForms(
    message_passing="modgraph.nn.message_passing.SelectedMessagePassing",
    grouped="modgraph.nn.SelectedGrouped",
    per_module="modgraph.nn.SelectedPerModule",
    gathered="modgraph.nn.SelectedGathered",
    masked="modgraph.nn.SelectedMasked",
)


class TopK(Router):
    """Send each token to the k modules with the largest scores. Routers below it say what a score is."""

    operands: ClassVar[tuple[Operand, ...]] = (tokens("tokens"),)
    records: ClassVar[tuple[Record, ...]] = (
        Record("gates", "... N M", Role.GATES),
        Record("scores", "... N M", Role.LOGITS),
        Record("selected", "... N M", Role.CHOICE),
    )
    reference = SELECTED.message_passing
    balanced = True

    k: int = setting(1, min=1, doc="modules for each token")

    def masked(self, signature: Signature) -> tuple[Axis, ...]:
        return (*(signature.axes.lead or ()), signature.axes["N"])

    def bind_pool(self, pool: PoolTypes, tokens: TensorType, *others: TensorType) -> Signature:
        if self.k > pool.size:
            reason = f'it selects k={self.k} of "{pool.name}", a pool of {pool.size}'
            raise Misfit(reason, "lower k, or raise the pool's size")
        return super().bind_pool(pool, tokens, *others)

    def active_modules(self, size: int) -> int:
        return self.k

    def lowerings(self, pool: PoolFacts) -> tuple[Lowering, ...]:
        return hard_forms(pool, SELECTED)


def hard_forms(pool: PoolFacts, paths: ChoiceForms) -> tuple[Lowering, ...]:
    """The forms that compute a route of which each token reaches some modules only."""
    sorted_ = "edges are sorted by module, and each module runs once, on its slice"
    each = "each module runs once, on the tokens that chose it"
    grouped = Lowering("grouped", paths.grouped, sorted_, exportable=pool.in_scan)
    per_module = Lowering("per_module", paths.per_module, each)
    reference = definition(paths.message_passing)
    if not pool.in_scan:
        return grouped, per_module, reference
    every = "every module runs and is masked, selection saves nothing"
    masked = Lowering("masked", paths.masked, every, exportable=False)
    rest = (masked, *(replace(form, exportable=False) for form in (per_module, reference)))
    if not pool.gathers:
        return (grouped, *rest)
    by_index = "the weights of the chosen modules are taken by index, at each step of the scan"
    gathered = Lowering("gathered", paths.gathered, by_index, exportable=pool.weights <= FEW_IN_BUNDLE)
    return (gathered, grouped, *rest) if pool.weights <= FEW_WEIGHTS else (grouped, gathered, *rest)
