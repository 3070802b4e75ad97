"""Ops that read a sequence step by step."""

from __future__ import annotations

from typing import ClassVar

from modgraph.declare import Operand, Signature, TorchModule, Use, Weight, setting, uniform
from modgraph.ops.op import Op
from modgraph.tape import FLOAT, INDEX, Value
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

    def on_tape(self, use: Use, x: Value) -> tuple[Value, ...]:
        y = self.layer(use, self._turned(use, use.cleared(x)))
        return (self._turned(use, y),)

    def _turned(self, use: Use, x: Value) -> Value:
        """A sequence in reverse, up to its last real step."""
        return use.tape.make(x.count, x, keeps_more=use.mask() * INDEX) if self.reverse else x

    def layer(self, use: Use, x: Value) -> Value:
        """All states, whose steps torch computes one by one: of each it keeps x and seven vectors."""
        more = 6 * use.result * use.tape.width
        return use.tape.make(use.result, x, *use.weights.values(), keeps=[x], keeps_result=True, keeps_more=more)


class LSTM(Recurrent):
    """A long short-term memory from step to step: c' = f c + i g, h' = o tanh(c'), each step yielding h'.

    i, f, g, o = W_ih x + b_ih + W_hh h + b_hh, through sigmoid, sigmoid, tanh, sigmoid; the state begins at zero.
    """

    name = "lstm"
    synonyms = ("long_short_term_memory",)
    example = "input x: float[5, 6] y = x -> lstm(3) output y"
    module = TorchModule("modgraph.nn.LSTM", "D", "hidden", bias="bias", reverse="reverse")
    gates = 4

    def layer(self, use: Use, x: Value) -> Value:
        """In 32 bits one kernel, which takes x step by step and has a workspace of its own; without biases it keeps
        copies of the weights."""
        width, D = use.tape.width, use.axis("D")
        if width != FLOAT:
            return super().layer(use, x)
        x = use.tape.copy(x)
        more = width * (3 * use.lead * self.hidden + (0 if self.bias else self.rows() * (D + self.hidden)))
        more += kernel_memory(use.lead, use.axis("N"), D, self.hidden)
        return use.tape.make(use.result, x, *use.weights.values(), keeps=[x], keeps_result=True, keeps_more=more)


class GRU(Recurrent):
    """A gated recurrent unit from step to step: h' = (1 − z) n + z h, each step yielding h'.

    r, z = sigmoid(W x + b + U h + c), n = tanh(W x + b + r (U h + c)), each with its rows; the state begins at zero.
    """

    name = "gru"
    synonyms = ("gated_recurrent_unit",)
    example = "input x: float[5, 6] y = x -> gru(3) output y"
    module = TorchModule("modgraph.nn.GRU", "D", "hidden", bias="bias", reverse="reverse")
    gates = 3


PAGE = 4096


def kernel_memory(examples: float, steps: int, width: int, hidden: int) -> float:
    """Bytes that oneDNN's LSTM kernel keeps: gates, states, cells and what goes into each step, of two layers where one
    reads the other, their rows laid out by 64 bytes, each array by pages."""
    of_step = [examples * steps * row for row in (laid_out(4 * hidden), laid_out(hidden))]
    before = 2 * examples * (steps + 1)
    of_states = [before * row for row in (hidden, hidden, *[laid_out(max(width, hidden))] * 3)]
    return sum(-(-4 * count // PAGE) * PAGE for count in (*of_step, *of_states))


def laid_out(numbers: int) -> int:
    """As how many a row of numbers is laid out: by 16, and not by 256, which would fall into the same places of a
    cache."""
    found = -(-numbers // 16) * 16
    return found if found % 256 else found + 16
