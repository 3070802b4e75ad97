"""Learned arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

from modgraph.declare import Operand, Signature, TorchModule, Use, Weight, normal, setting
from modgraph.ops.op import Op
from modgraph.tape import Value
from modgraph.types import Axes, Axis, Misfit, TensorType, once_each


class Parameter(Op):
    """A learned array, the same for every example: what `weight w: float[4, 8] = normal(0.02)` declares.

    Its operand only tells how many examples there are. The weight has the declaration's own name.
    """

    name = "parameter"
    synonyms = ("variable", "learned", "learned_queries", "latents")
    example = "input x: float[5, 6] weight w: float[6] = normal(1.0) y = x * w output y"
    operands = (Operand("like", "..."),)
    weights = (Weight("", "...", normal(0.02)),)
    module = TorchModule("modgraph.nn.Parameter", "rank", "sizes")

    sizes: tuple[int, ...] = setting((), min=1, doc="the lengths of its axes")
    names: tuple[str, ...] = setting((), axis=True, doc='what they are called, "" a plain one')

    def bind(self, *found: TensorType, **known: Any) -> Signature:
        if len(found) != 1:
            raise Misfit("it takes one value, which tells how many examples there are")
        names = self.names or ("",) * len(self.sizes)
        if len(names) != len(self.sizes):
            raise Misfit(f"{len(self.sizes)} axes have {len(names)} names", 'a plain one is called ""')
        axes = Axes(self)
        axes.lead = once_each(tuple(Axis(size, name) for size, name in zip(self.sizes, names, strict=True)))
        axes.bound["rank"] = len(found[0].shape)
        return Signature(self, found, axes, (TensorType("float", axes.lead),))

    def with_extent(self, axis: str, size: int | None) -> Self:
        """The same with another length of an axis of a name."""
        if axis not in self.names or size is None:
            return self
        lengths = zip(self.sizes, self.names, strict=True)
        return replace(self, sizes=tuple(size if name == axis else old for old, name in lengths))

    def on_tape(self, use: Use, like: Value) -> tuple[Value, ...]:
        return (use.tape.view(use.weights[""], use.result),)
