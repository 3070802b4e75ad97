"""Choices that use all modules evenly over the whole batch, all processes together."""

from __future__ import annotations

from modgraph.declare import Signature, axis_setting, own_module, setting
from modgraph.declare.indexing import read_everything
from modgraph.ops.along_axis import LogSoftmax
from modgraph.ops.choice import TopK
from modgraph.ops.op import Op
from modgraph.ops.zeros import Bound
from modgraph.types import Axes, Misfit


class _Balanced(Op):
    """Base of ops that even out the use of modules in training, and treat each token by itself in inference."""

    along = True
    masks = "..."
    over_batch = True
    balances = True
    indexing = read_everything

    iterations: int = setting(8, min=1, doc="number of corrections of all modules")
    axis: int | str = axis_setting(-1)

    def check(self, axes: Axes) -> None:
        modules = (axes.lead or ())[axes["position"]]
        if modules.is_padded:
            reason = f'examples differ in their length along "{modules}", so it is no axis of modules'
            raise Misfit(reason, f"name the axis of modules: {self.name}(axis=…)", 0)


class Sinkhorn(_Balanced, name="sinkhorn", synonyms="sinkhorn_knopp optimal_transport s_base"):
    """log softmax(x + b) over modules, where b corrects each module so that all get equal shares of the tokens.

    In training an iteration adds log(tokens / modules) − log Σ softmax(x + b) over the tokens of the whole batch to b,
    which is zero at first and has no gradient (Sinkhorn's scaling in logarithms; Clark et al., 2022, S-BASE). Outside
    training b is zero, so a result depends on its own token alone. `scores -> sinkhorn -> top_k` chooses evenly;
    `scores / 0.1 -> sinkhorn` is sharper. Padding uses nothing.
    """

    takes_logits = "x"
    example = "input x: float[5, 6] y = x -> sinkhorn(4) output y"
    module = own_module("position", "iterations")

    def deterministic(self) -> Op:
        return LogSoftmax(axis=self.axis)


class BalancedAssignment(_Balanced, name="balanced_assignment", synonyms="base_assignment linear_assignment auction"):
    """One at the module that a token is assigned to, else zero, without gradient; each module takes at most
    ⌈tokens / modules⌉ tokens of the whole batch, with nearly the largest sum of scores (BASE, Lewis et al., 2021).

    In training Sinkhorn's scaling prices the modules at seven temperatures, each half the last, with `iterations` at
    each. Then tokens go to the best module with room, minus its price, those first that would lose most elsewhere.
    Outside training a token takes its largest score. Padding is never assigned.
    """

    example = "input x: float[5, 6] y = x -> balanced_assignment output y"
    module = own_module("position", "iterations")

    def choice_bound(self, signature: Signature) -> Bound:
        return Bound(signature.axes["position"], 1)

    def deterministic(self) -> Op:
        return TopK(k=1, axis=self.axis)
