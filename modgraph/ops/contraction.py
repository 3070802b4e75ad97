"""Sums of products over an axis of two values."""

from __future__ import annotations

from math import prod
from string import ascii_letters
from typing import Any

from modgraph.declare import Operand, Signature, axis_setting, own_module, position_of, sizes
from modgraph.ops.op import Op
from modgraph.ops.zeros import ANYWHERE, Bound, Bounds, Propagated
from modgraph.types import Axes, Misfit, TensorType, may_meet, met, once_each


class Contract(Op, name="contract", synonyms="inner"):
    """Sum the products of two values over an axis: Σ_d left[…, d] right[…, d], padding left out.

    Axes that both have by name are aligned; all others are kept, those of the left value first.
    """

    example = "input q: float[5, 6] input k: float[7, 6] y = (q, k) -> contract output y"
    operands = (Operand("left", "..."), Operand("right", "..."))
    module = own_module("equation")
    masks = "over"
    masks_each = True
    broadcasts = True

    axis: int | str = axis_setting(-1)

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        if len(found) != 2 or any(type_.dtype != "float" for type_ in found):
            raise Misfit("it takes two float values", "write (a, b) -> contract")
        positions = [len(type_.shape) + position_of(self.axis, type_, self.name) for type_ in found]
        left, right = (type_.shape for type_ in found)
        over = left[positions[0]], right[positions[1]]
        if not may_meet(*over):
            both = [axis.name for axis in left if axis.name and axis in right]
            advice = f'name an axis that both have: contract(axis="{both[0]}")' if both else ""
            raise Misfit(f"it cannot sum over {over[0]} and {over[1]}, which are not one axis", advice)
        letters = iter(ascii_letters)
        first = [next(letters) for _ in left]
        by_name = {axis.name: letter for axis, letter in zip(left, first, strict=True) if axis.name}
        second = [
            first[positions[0]] if at == positions[1] else by_name.get(axis.name) or next(letters)
            for at, axis in enumerate(right)
        ]
        if len({*second}) < len(second):
            reason = f'it sums over "{over[0].name}", and the second value has another axis of that name'
            raise Misfit(reason, "rename one of them")
        kept = {
            letter: axis
            for letter, axis in (*zip(second, right, strict=True), *zip(first, left, strict=True))
            if letter != first[positions[0]]
        }
        order = [letter for letter in dict.fromkeys((*first, *second)) if letter in kept]
        axes.bound["equation"] = f"...{''.join(first)},...{''.join(second)}->...{''.join(order)}"
        axes.bound["over"] = met(*over)
        axes.bound["kept"] = tuple(kept[letter] for letter in order)
        over_batch = all(type_.per == "batch" for type_ in found)
        result = TensorType("float", once_each(axes.bound["kept"]), per="batch" if over_batch else "example")
        return (result,)

    def propagate(self, signature: Signature, known: Bounds) -> Propagated:
        terms, result = signature.axes["equation"].replace("...", "").split("->")
        (over,) = {*terms} - {*result, ","}
        bounds = [
            (term[bound.place], bound.k)
            for term, bound in zip(terms.split(","), known, strict=True)
            if bound is not None and bound.place is not None
        ]
        if any(letter == over for letter, _ in bounds):
            return None
        letter, k = bounds[0] if bounds else ("", None)
        size = signature.axes["over"].size
        return self, Bound(result.index(letter) - len(result), k and size and k * size) if letter else ANYWHERE

    def macs(self, over: int, kept: Any) -> int:
        return over * prod(sizes(kept))
