"""Ops on tokens: embedding, position, the class token."""

from __future__ import annotations

from dataclasses import replace

from modgraph.declare import (
    Operand,
    Signature,
    TorchModule,
    Weight,
    axis_setting,
    normal,
    position_of,
    setting,
    tokens,
)
from modgraph.ops.op import Op
from modgraph.ops.zeros import Bound, Bounds, drop_axis, move_bound
from modgraph.types import Axes, Axis, Misfit, TensorType, derived

TOKENS = (tokens("x"),)


class Embedding(Op):
    """Look up a learned vector for each token id."""

    name = "embedding"
    synonyms = ("embed", "lookup")
    example = "input x: token[7, 11] y = x -> embedding(4) output y"
    operands = (Operand("x", "...", dtype="token"),)
    results = ("... width",)
    weights = (Weight("weight", "size width", normal(1.0)),)
    module = TorchModule("torch.nn.Embedding", "size", "width")
    tokenizes = True

    width: int = setting(min=1, doc="length of a vector")


class ClassToken(Op):
    """Put one learned token in front of the others."""

    name = "class_token"
    synonyms = ("cls", "cls_token")
    example = "input x: float[5, 6] y = x -> class_token output y"
    operands = TOKENS
    results = ("... one_more D",)
    weights = (Weight("weight", "D", normal(0.02)),)
    module = TorchModule("modgraph.nn.ClassToken", "D")
    tokenizes = True

    @derived
    def one_more(self, N: int) -> int:
        return N + 1


class Position(Op):
    """Add a learned vector to each token by its place."""

    name = "position"
    synonyms = ("pos_embed", "position_embedding")
    example = "input x: float[5, 6] y = x -> position output y"
    operands = TOKENS
    results = ("... N D",)
    weights = (Weight("weight", "positions D", normal(0.02)),)
    module = TorchModule("modgraph.nn.Position", "positions", "D")
    affine = True
    tokenizes = True

    length: int | None = setting(None, min=1, doc="how many positions; the number of tokens if not given")

    def longest(self, signature: Signature) -> dict[str, int]:
        tokens = signature.axes["N"]
        return {tokens.name: self.length} if tokens.is_padded and self.length is not None else {}

    def check(self, axes: Axes) -> None:
        tokens = axes.size("N")
        if tokens is None and self.length is None:
            raise Misfit(f'the axis "{axes["N"]}" has no fixed length', "say how many positions: position(length=512)")
        if tokens is not None and self.length is not None and self.length < tokens:
            raise Misfit(f"{tokens} tokens do not fit {self.length} positions", "raise length")
        axes.bound["positions"] = axes["N"] if self.length is None else Axis(self.length)


class Select(Op):
    """Take one place along an axis, by default one of the tokens of [N, D]; of an axis of any length the first alone,
    since an example may have no other. The first of nothing is zero."""

    name = "select"
    synonyms = ("index",)
    example = "input x: float[5, 6] y = x -> select(1) output y"
    module = TorchModule("modgraph.nn.Select", "index", "position")
    masks = "position"
    affine = True

    index: int = setting(min=0, doc="the place, from 0")
    axis: int | str = axis_setting(-2)

    @property
    def message_rank(self) -> int | None:
        return -self.axis if isinstance(self.axis, int) else None

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        (x,) = found
        axes.bound["position"] = position = position_of(self.axis, x, self.name)
        at = position + len(x.shape)
        self._fits(x.shape[at])
        return (x.with_shape((*x.shape[:at], *x.shape[at + 1 :])),)

    def _fits(self, along: Axis) -> None:
        """Raises `Misfit` where an example may have no such place."""
        if along.size is not None and self.index >= along.size:
            last = replace(self, index=along.size - 1)
            raise Misfit(f"there is no place {self.index} along an axis of {along.size}", f"the last: {last}")
        if along.size is None and self.index > 0:
            reason = f'the axis "{along}" has no fixed length, so an example may have no place {self.index}'
            raise Misfit(reason, "take the first with select(0) or the last with last, or give the axis a number")

    def propagate_choices(self, signature: Signature, known: Bounds) -> tuple[Op, Bound] | None:
        (bound,), position = known, signature.axes["position"]
        return None if bound is None or bound.place == position else (self, move_bound(bound, drop_axis(position)))
