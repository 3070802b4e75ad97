"""Ops on tokens: embeddings, positions, the class token, selection, and recurrent layers."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from modgraph.declare import Operand, Signature, TorchModule, Weight, normal, own_module, setting, tokens, uniform
from modgraph.declare.indexing import (
    Indexing,
    Place,
    Reading,
    Use,
    everywhere,
    match_patterns,
    move_axes,
    place_at,
    read_reduced,
)
from modgraph.ops.along_axis import Reduction
from modgraph.ops.op import Op
from modgraph.ops.zeros import drop_axis
from modgraph.types import Axes, Axis, Misfit, TensorType, infer_axis

TOKENS = (tokens("x"),)


class Embedding(Op, name="embedding", synonyms="embed"):
    """Look up a learned vector for each token id."""

    torch_arguments = "num_embeddings= embedding_dim=width"
    example = "input x: token[7, 11] y = x -> embedding(4) output y"
    operands = (Operand("x", "...", dtype="token"),)
    results = ("... width",)
    weights = (Weight("weight", "size width", normal(1.0)),)
    module = TorchModule("torch.nn.Embedding", "size", "width")
    tokenizes = True

    width: int = setting(min=1, doc="width of a vector")

    def indexing(self, use: Use) -> Indexing:
        return ((Reading(0, move_axes(use.shapes[0], lambda axis: axis - 1)),),)


class ClassToken(Op, name="class_token", synonyms="cls cls_token"):
    """Prepend a learned token."""

    operands = TOKENS
    results = ("... one_more D",)
    weights = (Weight("weight", "D", normal(0.02)),)
    module = own_module("D")
    tokenizes = True

    @infer_axis
    def one_more(self, N: int) -> int:
        return N + 1

    def indexing(self, use: Use) -> Indexing:
        return ((Reading(0, move_axes(use.shapes[0], lambda axis: axis, {-2: place_at(-2, -1, -1)})),),)


class Position(Op, name="position", synonyms="pos_embed position_embedding"):
    """Add a learned vector to each token by its position, or by a value of positions: `(x, places) -> position`."""

    operands = (*TOKENS, Operand("places", "... N", optional=True))
    results = ("... N D",)
    weights = (Weight("weight", "positions D", normal(0.02)),)
    module = own_module("positions", "D")
    indexing = match_patterns("N D")
    affine = True
    tokenizes = True

    length: int | None = setting(None, min=1, doc="number of positions; the number of tokens if not given")

    def longest(self, signature: Signature) -> dict[str, int]:
        tokens = signature.axes["N"]
        return {tokens.lengths: self.length} if tokens.is_padded and self.length is not None else {}

    def check(self, axes: Axes) -> None:
        tokens = axes.size("N")
        if tokens is None and self.length is None:
            raise Misfit(f'the axis "{axes["N"]}" has no fixed length', "say how many positions: position(length=512)")
        if tokens is not None and self.length is not None and self.length < tokens:
            raise Misfit(f"{tokens} tokens do not fit {self.length} positions", "raise length")
        axes.bound["positions"] = axes["N"] if self.length is None else Axis(self.length)


class Select(Reduction, name="select", synonyms="index"):
    """Take one place along an axis, by default one of the tokens of [N, D]; an empty sequence gives zero.

    An axis of variable length allows only the first place, since an example may have no other.
    """

    example = "input x: float[5, 6] y = x -> select(1) output y"
    module = own_module("index", "position")
    indexing = read_reduced(lambda op, axis: Place((), op.index, op.index))
    affine = True
    takes_ids = True
    propagate = drop_axis

    index: int = setting(min=0, doc="the place, from 0")

    @property
    def message_rank(self) -> int | None:
        return -self.axis if isinstance(self.axis, int) else None

    def check(self, axes: Axes) -> None:
        along = (axes.lead or ())[axes["position"]]
        if along.size is not None and self.index >= along.size:
            last = replace(self, index=along.size - 1)
            raise Misfit(f"there is no place {self.index} along an axis of {along.size}", f"the last: {last}")
        if along.size is None and self.index > 0:
            reason = f'the axis "{along}" has no fixed length, so an example may have no place {self.index}'
            raise Misfit(reason, "take the first with select(0) or the last with last, or give the axis a number")


STEPS = Operand("x", "... N D", help="a sequence has the axes number of steps, width")
START_HELP = "an initial state has the outer axes of the sequence and the width of the state"
H0 = Operand("h0", "... H", help=START_HELP, optional=True)
C0 = Operand("c0", "... H", help=START_HELP, optional=True)


class Recurrent(Op):
    """Base of recurrent layers. Their weights are those of torch's layer of the same name, with gates in torch's
    order."""

    torch_arguments = "input_size= hidden_size=hidden"
    results = ("... N hidden",)
    weights = (
        Weight("weight_ih", "rows D", uniform("hidden")),
        Weight("weight_hh", "rows hidden", uniform("hidden")),
        Weight("bias_ih", "rows", uniform("hidden"), when="bias"),
        Weight("bias_hh", "rows", uniform("hidden"), when="bias"),
    )
    module = own_module("D", "hidden", bias="bias", reverse="reverse")
    gates: ClassVar[int]

    hidden: int = setting(min=1, doc="width of the state, which each step returns")
    bias: bool = setting(True, doc="add two learned biases, as torch does")
    reverse: bool = setting(False, doc="read from the last step to the first; results keep their places")

    @infer_axis
    def rows(self) -> int:
        return self.gates * self.hidden

    def check(self, axes: Axes) -> None:
        if "H" in axes.bound and axes.size("H") != self.hidden:
            reason = f"the initial state has a width of {axes['H']}, and the layer one of {self.hidden}"
            raise Misfit(reason, f"make them equal, for example: {replace(self, hidden=axes.size('H') or self.hidden)}")

    def list_masked_axes(self, signature: Signature) -> tuple[Axis, ...]:
        return (signature.axes["N"],) if self.reverse else ()

    def indexing(self, use: Use) -> Indexing:
        (steps, *states), last = use.shapes, {-1: everywhere(use.shapes[0][-1])}
        along = {-2: place_at(-2, 0, None) if self.reverse else place_at(-2, None, 0)}
        readings = [Reading(0, move_axes(steps, lambda axis: axis, last | along))]
        for number, shape in enumerate(states, start=1):
            readings.append(Reading(number, move_axes(shape, lambda axis: axis - 1, {-1: everywhere(shape[-1])})))
        return (tuple(readings),) * len(use.signature.results)

    def macs(self, N: int, D: int) -> int:
        return N * self.rows() * (D + self.hidden)


class LSTM(Recurrent, name="lstm", synonyms="long_short_term_memory"):
    """Long short-term memory: c' = f c + i g, h' = o tanh(c'); each step returns h'.

    i, f, g, o = W_ih x + b_ih + W_hh h + b_hh, through sigmoid, sigmoid, tanh and sigmoid. The state h and the cell c
    begin with zeros, or as given: `(x, h0, c0) -> lstm(hidden)`. With `cells` it returns h' and c'.
    """

    example = "input x: float[5, 6] input s: float[3] y = (x, s, s * 2) -> lstm(3) output y"
    operands = (STEPS, H0, C0)
    module = own_module("D", "hidden", bias="bias", reverse="reverse", cells="cells")
    gates = 4

    cells: bool = setting(False, doc="return the cells of all steps as a second result")

    def check(self, axes: Axes) -> None:
        super().check(axes)
        if self.cells and self.reverse:
            raise Misfit("cells are those of a layer that reads forwards", "leave out cells or reverse")

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        return super().infer(axes, found) * (1 + self.cells)


class GRU(Recurrent, name="gru", synonyms="gated_recurrent_unit"):
    """Gated recurrent unit: h' = (1 − z) n + z h; each step returns h'.

    r, z = sigmoid(W x + b + U h + c), n = tanh(W x + b + r (U h + c)), each with its own rows. The state begins with
    zeros, or as given: `(x, h0) -> gru(hidden)`.
    """

    example = "input x: float[5, 6] input s: float[3] y = (x, s) -> gru(3) output y"
    operands = (STEPS, H0)
    gates = 3
