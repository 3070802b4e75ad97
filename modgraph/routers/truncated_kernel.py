"""Routing by a truncated kernel (Rahaman et al., 2021; a baseline of Hu et al., ICLR 2024)."""

from __future__ import annotations

from modgraph.declare import Initial, Record, Role, Signature, TorchModule, Use, Weight, setting, tokens, uniform
from modgraph.routers.on_tape import TapedPool, cosines, weighted_sum
from modgraph.routers.router import Lowering, PoolFacts, Router
from modgraph.tape import Value
from modgraph.types import Axis


class TruncatedKernel(Router):
    """Weight each pair of token and module by a kernel of the module's signature and the token's key.

    affinity_ij = exp(−(1 − cos(signature_j, Wa s_i)) / bandwidth), zero where 1 − cos is beyond the truncation. One
    vector per module, v_j = mean_i affinity_ij f_j(s_i). The bandwidth is learnt and starts at one.
    """

    name = "truncated_kernel"
    synonyms = ("kernel", "rbf")
    example = (
        "input x: float[5, 6] pool p[3] = linear(4) router r = truncated_kernel(truncation=1) y = x -> p by r output y"
    )
    operands = (tokens("tokens"),)
    results = ("... M V",)
    one_for_each = "module"
    records = (Record("gates", "... N M", Role.GATES),)
    weights = (
        Weight("weight", "V D", uniform("D")),
        Weight("bias", "V", uniform("D"), when="bias"),
        Weight("signature", "M V", uniform("V")),
        Weight("bandwidth", "", Initial("ones")),
    )
    module = TorchModule("modgraph.nn.TruncatedKernel", "D", "V", "M", truncation="truncation", bias="bias")
    reference = "modgraph.nn.message_passing.KernelMessagePassing"
    chooses_along = None

    truncation: float | None = setting(
        None, min=0, max=2, doc="distance beyond which the kernel is zero; none if not given"
    )
    bias: bool = setting(False, doc="add a learned vector to the keys")

    def masked(self, signature: Signature) -> tuple[Axis, ...]:
        return (*(signature.axes.lead or ()), signature.axes["N"])

    def macs(self, N: int, M: int, D: int, V: int) -> int:
        return N * D * V + 2 * N * M * V

    def on_tape(self, use: Use, pool: TapedPool, form: str, tokens: Value, *others: Value) -> tuple[Value, ...]:
        tape, tokens = use.tape, use.cleared(tokens)
        M, D, V = (use.axis(name) for name in "MDV")
        *keys, signature, bandwidth = use.weights.values()
        cosine = cosines(use, tokens, keys, D, V)(signature, M)
        distance = tape.function(tape.function(cosine, "nothing"), "nothing")
        kernel = tape.function(tape.make(distance.count, distance, bandwidth, keeps=[distance, bandwidth]), "result")
        if self.truncation is not None:
            kernel = tape.make(kernel.count, kernel, keeps_more=kernel.count)
        affinity = use.cleared(kernel)
        weights = tape.make(affinity.count, affinity, keeps_more=use.lead * tape.width)
        return weighted_sum(use, pool, tokens, D, V)(weights), affinity

    def lowerings(self, pool: PoolFacts) -> tuple[Lowering, ...]:
        if not pool.affine:
            reason = "dense over all pairs: the modules are not affine, so every message is computed"
            return (Lowering("dense", "modgraph.nn.KernelDense", reason), self.reference_form)
        reason = "dense and factorised: the modules are affine, so tokens are weighted before the modules run"
        return (Lowering("dense", "modgraph.nn.KernelFactorised", reason), self.reference_form)
