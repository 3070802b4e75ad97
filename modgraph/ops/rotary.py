"""Rotary positions."""

from __future__ import annotations

from modgraph.declare import Operand, TorchModule, axis_setting, setting
from modgraph.declare.indexing import Indexing, Reading, Use, align_places, everywhere, insert_axis, move_axes
from modgraph.ops.arithmetic import align_within
from modgraph.ops.op import Op
from modgraph.types import Axes, Misfit, TensorType

LENGTH = "number of positions in training; only waves of fewer than cycles[0] cycles in them are scaled fully"
CYCLES = "numbers of cycles between which the scaling fades out: [1, 4] in Llama 3, [1, 32] in YaRN"
FADE = "whether the share falls with the number of cycles, or with its logarithm"


class Rotary(Op, name="rotary", synonyms="rope rotary_embedding rotary_position_embedding apply_rotary"):
    """Rotate pairs of numbers by angles that grow with the position, from 0, along an axis, by default the tokens.

    Number i is paired with number i + W / 2, as in Llama; their angle is position · base^(−2i/W). W counts the numbers
    that rotate: a `partial` share of the last axis, from the first (Su et al., 2021). The product of a rotated query
    and key depends only on their distance. `(q, places) -> rotary` takes the positions from a
    value, which lacks the last axis and repeats along others that it lacks.

    `scaled=4` makes all positions four times as close, for sequences four times as long. With `trained`, only slow
    waves are scaled: those of fewer than cycles[0] cycles in `trained` positions fully, those of more than cycles[1]
    not at all, those between by a share (YaRN, Peng et al., 2023; Llama 3). The checkpoints of YaRN take
    `fade="logarithmic"`, a share that is linear in i.
    """

    example = "input x: float[5, 6] y = x -> rotary(100.0, partial=0.7, scaled=2.0, trained=8) output y"
    operands = (Operand("x", "... W"), Operand("places", "...", optional=True))
    along = True
    module = TorchModule(
        "modgraph.nn.ScaledRotary",
        "turning",
        "position",
        "base",
        "scaled",
        "trained",
        "cycles",
        "fade",
        "lacks",
        "order",
    )

    base: float = setting(10000.0, min=1, doc="base of the angles; larger ones turn slower")
    partial: float = setting(1.0, min=0, max=1, doc="share of the numbers that rotate, from the first")
    scaled: float = setting(1.0, min=1, doc="factor by which positions are closer")
    trained: int | None = setting(None, min=1, doc=LENGTH)
    cycles: tuple[float, ...] = setting((1.0, 4.0), min=0, doc=CYCLES)
    fade: str = setting("linear", choices=("linear", "logarithmic"), doc=FADE)
    axis: int | str = axis_setting(-2)

    @property
    def message_rank(self) -> int | None:
        return -self.axis if isinstance(self.axis, int) else None

    def check(self, axes: Axes) -> None:
        width = axes.resolve("W")
        axes.bound["turning"] = turning = int(width * self.partial)
        if axes["position"] == -1:
            raise Misfit(
                "the last axis has the numbers that rotate, so positions count along another", "name it: axis="
            )
        if turning % 2 or not turning:
            share = "" if self.partial == 1 else f", of which {turning} rotate"
            raise Misfit(f"it turns pairs, and there are {width} numbers{share}", "make that number even")
        if len(self.cycles) != 2 or not self.cycles[0] < self.cycles[1]:
            raise Misfit("cycles has the fewest and the most cycles", "for example: cycles=[1, 4]")
        if self.fade == "logarithmic" and not self.cycles[0]:
            raise Misfit("the logarithm of 0 cycles is no number", "for example: cycles=[1, 32]")
        if self.trained is not None and self.scaled == 1:
            raise Misfit("trained says which waves are scaled, and none are", "say by how much: scaled=8")

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        if len(found) > 2:
            raise Misfit(f"it takes 1 to 2 operands (x, places), not {len(found)}")
        super().resolve(axes, found[:1])
        axes.bound["lacks"] = axes.bound["order"] = ()
        if len(found) == 2:
            outer = found[0].with_shape(found[0].shape[:-1])
            places = align_within(found[1], outer, self.name, "the value of positions", 1)
            axes.bound["lacks"], axes.bound["order"] = places.lacks, places.order
        return found[:1]

    def indexing(self, use: Use) -> Indexing:
        """A vector reads itself, and its own position."""
        x, *places = use.shapes
        vectors = Reading(0, move_axes(x, lambda axis: axis, {-1: everywhere(x[-1])}))
        aligned = (align_places(shape, x[:-1]) for shape in places)
        return ((vectors, *(Reading(1, tuple(insert_axis(each, -1) for each in of)) for of in aligned)),)
