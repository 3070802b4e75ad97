"""Ops that read a sequence step by step."""

from __future__ import annotations

from typing import ClassVar

from modgraph.declare import Operand, Signature, Weight, own_module, setting, uniform
from modgraph.ops.op import Op
from modgraph.types import Axis, derived

STEPS = Operand("x", "... N D", help="a sequence has the axes number of steps, width")


class Recurrent(Op):
    """Its weights are those of torch's layer of that name, the gates in torch's order."""

    operands = (STEPS,)
    results = ("... N hidden",)
    weights = (
        Weight("weight_ih", "rows D", uniform("hidden")),
        Weight("weight_hh", "rows hidden", uniform("hidden")),
        Weight("bias_ih", "rows", uniform("hidden"), when="bias"),
        Weight("bias_hh", "rows", uniform("hidden"), when="bias"),
    )
    module = own_module("D", "hidden", bias="bias", reverse="reverse")
    gates: ClassVar[int]

    hidden: int = setting(min=1, doc="numbers of a state, which is what each step yields")
    bias: bool = setting(True, doc="two learned vectors, as torch has them")
    reverse: bool = setting(False, doc="read from the last step to the first; what is yielded keeps its place")

    @derived
    def rows(self) -> int:
        return self.gates * self.hidden

    def masked(self, signature: Signature) -> tuple[Axis, ...]:
        return (signature.axes["N"],) if self.reverse else ()

    def macs(self, N: int, D: int) -> int:
        return N * self.rows() * (D + self.hidden)


class LSTM(Recurrent, name="lstm", synonyms="long_short_term_memory"):
    """A long short-term memory from step to step: c' = f c + i g, h' = o tanh(c'), each step yielding h'.

    i, f, g, o = W_ih x + b_ih + W_hh h + b_hh, through sigmoid, sigmoid, tanh, sigmoid; the state begins at zero.
    """

    example = "input x: float[5, 6] y = x -> lstm(3) output y"
    gates = 4


class GRU(Recurrent, name="gru", synonyms="gated_recurrent_unit"):
    """A gated recurrent unit from step to step: h' = (1 − z) n + z h, each step yielding h'.

    r, z = sigmoid(W x + b + U h + c), n = tanh(W x + b + r (U h + c)), each with its rows; the state begins at zero.
    """

    example = "input x: float[5, 6] y = x -> gru(3) output y"
    gates = 3
