"""The forms that compute a route along a choice."""

from __future__ import annotations

from dataclasses import replace

from modgraph.routers.router import Lowering, PoolFacts, definition

# Of a module: in a scan, copying so many for every token is less than sorting tokens at every step.
FEW_WEIGHTS = 2**14
FEW_IN_BUNDLE = 2**12  # ONNX Runtime sorts in less time

GATHERED = "gathered"  # the form of a choice in which weights are taken by index
MASKED = "masked"  # the form of a choice in which every module runs
SELECTED = "modgraph.nn.message_passing.SelectedMessagePassing"


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
