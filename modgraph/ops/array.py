"""Constants, learned arrays, and states with an update rule for each training step."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import ClassVar, Literal, Self

from modgraph.declare import Operand, Weight, normal, own_module, setting
from modgraph.declare.indexing import read_nothing
from modgraph.ops.op import Op
from modgraph.types import Axes, Axis, Misfit, Shape, TensorType, edges, infer_axis, require_distinct


class Array(Op):
    """Base of arrays with axes of their own; the operand gives only the batch size and the dtype."""

    operands = (Operand("like", "..."),)
    per: ClassVar[Literal["example", "batch"]] = "example"
    indexing = read_nothing
    takes_edges = True

    sizes: tuple[int, ...] = setting((), min=1, doc="lengths of the axes")
    names: tuple[str, ...] = setting((), axis=True, doc='names of the axes; "" for an unnamed one')

    def shape(self) -> Shape:
        """The axes. Raises `Misfit`."""
        names = self.names or ("",) * len(self.sizes)
        if len(names) != len(self.sizes):
            raise Misfit(f"{len(self.sizes)} axes have {len(names)} names", 'a plain one is called ""')
        return require_distinct(tuple(Axis(size, name) for size, name in zip(self.sizes, names, strict=True)))

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        if len(found) != 1:
            raise Misfit("it takes one value, which tells how many examples there are")
        if found[0].per == "batch":
            raise Misfit(f"it takes a value of each example, and this is {found[0]}", "", 0)
        axes.lead = self.shape()
        axes.bound["rank"] = len(found[0].shape)
        return (TensorType("float", axes.lead, per=self.per),)

    def with_extent(self, axis: str, size: int | None) -> Self:
        """Return the op with another size of a named axis."""
        if axis not in self.names or size is None:
            return self
        lengths = zip(self.sizes, self.names, strict=True)
        return replace(self, sizes=tuple(size if name == axis else old for old, name in lengths))


class Constant(Array, name="constant", synonyms="literal tensor array full"):
    """A constant array that all examples share: `constant c: float[2, 3] = [[1, 0, 0], [0, 1, 0]]`.

    A single number fills every place. `constant table: token[1000, 8] = …` has an id below 8 at each of 1000 places,
    `constant link: edge[expert, expert] = [[0, 1], [1, 2]]` two edges.
    """

    example = "input x: float[5, 3] constant c: float[3] = [1, 0.5, 2] y = x * c output y"
    module = own_module("rank", "sizes", "numbers", ids="has_ids")
    is_array = True

    numbers: tuple[float, ...] = setting((0.0,), doc="the numbers, last axis innermost; one number fills all places")

    ids: int | None = setting(None, min=1, doc="for an array of ids, how many there are")
    ends: tuple[str, ...] = setting(
        default=(), axis=True, doc="for edges, the names of the axes of sources and targets"
    )
    counts: tuple[int, ...] = setting(default=(), min=1, doc="for edges, the lengths of these axes")

    @infer_axis
    def has_ids(self) -> bool:
        return self.ids is not None or bool(self.ends)

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        if len(self.numbers) not in (1, prod(self.sizes)):
            reason = f"it has {len(self.numbers)} numbers for {prod(self.sizes)} places"
            raise Misfit(reason, "give a number for each place, or one for all")
        (result,) = super().resolve(axes, found)
        if self.ends:
            return (self._resolve_edges(),)
        if self.ids is None:
            return (result,)
        other = next((each for each in self.numbers if each != int(each) or not 0 <= each < self.ids), None)
        if other is not None:
            raise Misfit(f"{other:g} is no id below {self.ids}", f"ids are whole numbers, 0 to {self.ids - 1}")
        return (replace(result, dtype="token", size=self.ids),)

    def _resolve_edges(self) -> TensorType:
        shape = self.shape()
        if not len(self.ends) == len(self.counts) == 2 or len(shape) != 2 or shape[1] != Axis(2):
            raise Misfit("edges are pairs of places along two axes", 'for example: ends=["p", "p"], counts=[4, 4]')
        if len(self.numbers) != prod(self.sizes):
            raise Misfit("edges are a list of pairs", "for example: [[0, 1], [1, 2]]")
        for at, number in enumerate(self.numbers):
            if number != int(number) or not 0 <= number < self.counts[at % 2]:
                reason = f"edge {at // 2} {('begins', 'ends')[at % 2]} at {number:g}, and {self.ends[at % 2]} has"
                advice = "count its places from 0"
                raise Misfit(f"{reason} 0 to {self.counts[at % 2] - 1}", advice)
        source, target = (Axis(count, name) for count, name in zip(self.counts, self.ends, strict=True))
        return edges(shape[0], source, target)

    def with_extent(self, axis: str, size: int | None) -> Self:
        changed = super().with_extent(axis, size)
        if axis not in self.ends or size is None:
            return changed
        counts = zip(self.counts, self.ends, strict=True)
        return replace(changed, counts=tuple(size if name == axis else old for old, name in counts))


class Parameter(Array, name="parameter", synonyms="variable learned learned_queries latents"):
    """A learned array that all examples share: `weight w: float[4, 8] = normal(0.02)`.

    Its operand gives only the batch size. The weight has the name of the declaration.
    """

    example = "input x: float[5, 6] weight w: float[6] = normal(1.0) y = x * w output y"
    weights = (Weight("", "...", normal(0.02)),)
    module = own_module("rank", "sizes")
    is_array = True
    gathers = True


class State(Array, name="state", synonyms="buffer running ema moving_average"):
    """An array without gradient: `state bias: float[expert] = zeros`. Its rule, `next bias = …`, gives its value after
    a training step.

    The whole batch shares it. Without a rule and without axes, `train: {states: {NAME: …}}` moves it by a schedule.
    `metrics.jsonl` has such numbers, and those with a rule, after each epoch: `state.NAME`. Checkpoints contain states;
    exports make them constants.
    """

    example = "input x: float[5, 6] state s: float[6] = zeros y = x + s output y"
    weights = (Weight("value", "...", buffer=True),)
    module = own_module("sizes")
    per = "batch"


class NextState(Op, name="next_state", synonyms="assign update register_buffer"):
    """The value of a state after a training step: `next bias = …`. It must be a value of the whole batch.

    It is computed before the weights are updated, without gradient.
    """

    example = """input x: float[5, 6] state s: float[6] = zeros next s = 0.9 * s + 0.1 * (x -> batch_mean(-2))
      y = x + s output y"""
    operands = (Operand("state", "..."), Operand("value", "..."))

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        if len(found) == 2 and found[1].per != "batch":
            reason = "a state is one for the whole batch, and this value is of each example"
            raise Misfit(reason, "take its mean first: value -> batch_mean, with the axes that go: batch_mean(-2)", 1)
        return super().resolve(axes, found)

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        return (found[0],)
