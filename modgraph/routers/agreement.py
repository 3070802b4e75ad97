"""Agreement routing (Hu et al., Scalable Modular Network, ICLR 2024, Algorithm 1)."""

from __future__ import annotations

from dataclasses import replace

from modgraph.declare import Record, Role, Signature, TorchModule, Use, Weight, setting, tokens, uniform
from modgraph.routers.on_tape import TapedPool, cosines, senders, weighted_sum
from modgraph.routers.router import Lowering, PoolFacts, Router
from modgraph.tape import Value
from modgraph.types import Axis


class Agreement(Router):
    """Let modules and tokens agree, over some iterations, on which token goes to which module.

    With messages u_ij = f_j(s_i) and keys t_i = Wa s_i: v_j is first the mean of u_ij over tokens; then, each
    iteration, α_ij += cos(t_i, v_j), c_ij = softmax of α_ij over modules, v_j = Σ_i c_ij u_ij. One vector per module.
    """

    name = "agreement"
    synonyms = ("routing_by_agreement", "dynamic_routing", "capsule")
    example = "input x: float[5, 6] pool p[3] = linear(4) router r = agreement(2) y = x -> p by r output y"
    operands = (tokens("tokens"),)
    results = ("... M V",)
    one_for_each = "module"
    records = (Record("gates", "... N M", Role.GATES), Record("scores", "... N M", Role.SCORES))
    weights = (
        Weight("weight", "V D", uniform("D")),
        Weight("bias", "V", uniform("D"), when="bias"),
    )
    module = TorchModule(
        "modgraph.nn.Agreement", "D", "V", "iterations", bias="bias", update="update", residual="residual"
    )
    reference = "modgraph.nn.message_passing.AgreementMessagePassing"
    chooses_along = None
    balanced = True

    iterations: int = setting(4, min=0, max=1000, doc="rounds of agreement; 0 leaves the mean")
    bias: bool = setting(False, doc="add a learned vector to the keys")
    update: str = setting("sum", choices=("sum", "normalised"), doc="divide v_j by Σ_i c_ij, or not")
    residual: bool = setting(False, doc="the result is ReLU(v⁰ + v), not v")

    @property
    def rounds(self) -> tuple[Router, ...]:
        """Rounds only look back, so round t of many is the last of t."""
        return tuple(replace(self, iterations=t) for t in range(1, self.iterations + 1)) or (self,)

    def masked(self, signature: Signature) -> tuple[Axis, ...]:
        return (*(signature.axes.lead or ()), signature.axes["N"])

    def macs(self, N: int, M: int, D: int, V: int) -> int:
        keys = N * D * V if self.iterations else 0
        return keys + self.iterations * (N * M * V + N * M * V)

    def on_tape(self, use: Use, pool: TapedPool, form: str, tokens: Value, *others: Value) -> tuple[Value, ...]:
        tape, tokens = use.tape, use.cleared(tokens)
        M, D, V = (use.axis(name) for name in "MDV")
        pairs, modules = senders(use) * M, use.lead * M
        summed = weighted_sum(use, pool, tokens, D, V)
        edges = use.cleared(tape.drawn(pairs))
        first = values = summed(tape.function(edges))
        scores, gates = tape.drawn(pairs), tape.function(edges)
        if self.iterations:
            cosine = cosines(use, tokens, [*use.weights.values()], D, V)
        for _ in range(self.iterations):
            scores = tape.add(pairs, scores, use.cleared(cosine(values, modules)))
            gates = use.cleared(tape.function(scores, "result"))
            values = summed(gates)
            if self.update == "normalised":
                total = tape.make(modules, gates)
                values = tape.quotient(values.count, values, total)
        if self.residual:
            values = tape.function(tape.add(values.count, first, values), "result")
        return values, gates, scores

    def lowerings(self, pool: PoolFacts) -> tuple[Lowering, ...]:
        if not pool.affine:
            reason = "dense over all pairs: the modules are not affine, so every message is computed once"
            return (Lowering("dense", "modgraph.nn.AgreementDense", reason), self.reference_form)
        reason = "dense and factorised: the modules are affine, so tokens are weighted before the modules run"
        return (Lowering("dense", "modgraph.nn.AgreementFactorised", reason), self.reference_form)
