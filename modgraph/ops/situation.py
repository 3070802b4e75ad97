"""Ops that differ between training and inference: noise, random choices, stopped gradients.

Outside training there is no noise, and `draw` takes the most probable place.
"""

from __future__ import annotations

from modgraph.declare import Operand, Signature, axis_setting, check_one_kind, own_module, position_of, setting
from modgraph.declare.indexing import Indexing, Reading, Use, everywhere, move_axes, place_at, read_pointwise
from modgraph.ops.choice import TopK
from modgraph.ops.op import Op
from modgraph.ops.zeros import Bound, join_bounds
from modgraph.types import Axes, Misfit, TensorType, format_shape, shapes_meet


class NormalNoise(Op, name="normal_noise", synonyms="gaussian_noise jitter"):
    """Independent normal numbers of a value's shape, times a standard deviation, in training; otherwise zero.

    The deviation is a number, `scores -> normal_noise(0.1)`, or a value, `(scores, deviation) -> normal_noise`. An
    export removes the noise and whatever only the noise needs.
    """

    nondifferentiable = ("x",)
    example = "input x: float[5, 6] y = x + (x -> normal_noise(0.1)) output y"
    operands = (Operand("x", "..."), Operand("deviation", "..."))
    module = own_module("deviation")
    constant_for = ("", "deviation")
    zero_outside_training = True
    indexing = read_pointwise

    deviation: float | None = setting(None, min=0, doc="the standard deviation, unless a second operand gives it")

    def slots_of(self, count: int) -> tuple[str, ...]:
        return ("x", "deviation") if self.deviation is None else ("x",)

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        if len(found) != len(self.slots_of(len(found))):
            advice = "write scores -> normal_noise(0.1), or (scores, deviation) -> normal_noise"
            raise Misfit("it takes a value, and its standard deviation: a number or a second value", advice)
        for at, type_ in enumerate(found):
            if type_.dtype != "float":
                raise Misfit(f"it takes float values, not {type_}", "", at)
        if not shapes_meet(found[0].shape, found[-1].shape):
            shapes = " and ".join(format_shape(each.shape) for each in found)
            raise Misfit(f"a value and its deviation are of one shape, not {shapes}", "", 1)
        if found[-1].per == "example":
            check_one_kind(found)
        return (found[0],)

    def deterministic(self) -> Op:
        return NormalNoise(deviation=0.0)


class GumbelNoise(Op, name="gumbel_noise"):
    """Independent standard Gumbel numbers of a value's shape in training; otherwise zero.

    The argmax of logits plus this noise samples their softmax. `noisy = logits + (logits -> gumbel_noise)`, and `(noisy
    / t -> softmax, noisy -> top_k) -> straight_through` is a gate of temperature t (Jang et al., 2017).
    """

    nondifferentiable = ("x",)
    example = "input x: float[5, 6] y = x + (x -> gumbel_noise) output y"
    zero_outside_training = True
    indexing = read_pointwise

    def deterministic(self) -> Op:
        return NormalNoise(deviation=0.0)


class Draw(Op, name="draw", synonyms="multinomial sample_categorical gumbel_max random_choice"):
    """One at a place sampled along an axis from the softmax of a value, else zero; without gradient.

    Inference takes the most probable place, of equal ones the first. Padding is never chosen; where all is padding, the
    result is zero. A second operand may force choices in training, which allows a trainer to evaluate earlier
    decisions: it has the index of a place for each choice, along the other axes, or −1 to sample. An export takes the
    most probable place and ignores forced choices.
    """

    takes_logits = "x"
    example = "input x: float[5, 6] y = x -> log_softmax -> draw output y"
    operands = (Operand("x", "..."), Operand("forced", "..."))
    module = own_module("position")
    masks = "..."
    masks_each = True
    draws = True

    axis: int | str = axis_setting(-1)

    def slots_of(self, count: int) -> tuple[str, ...]:
        return ("x", "forced")[:count]

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        if not 1 <= len(found) <= 2 or found[0].dtype != "float":
            raise Misfit("it takes logits, and perhaps which places are taken", "write scores -> draw", 0)
        x, position = found[0], position_of(self.axis, found[0], self.name)
        axes.bound["position"], axes.lead = position, x.shape
        at = position + len(x.shape)
        others = (*x.shape[:at], *x.shape[at + 1 :])
        if len(found) == 2 and (found[1].dtype not in ("float", "class") or not shapes_meet(found[1].shape, others)):
            raise Misfit(f"a forced choice is the number of a place for each of {format_shape(others)}", "", 1)
        check_one_kind(found)
        return (x,)

    def indexing(self, use: Use) -> Indexing:
        """The logits along the axis, and the choice that may be forced for the other axes."""
        shape, position = use.shapes[0], use.signature.axes["position"]
        forced = tuple(place_at(axis - (axis <= position)) for axis in range(1 - len(shape), 0))
        along = move_axes(shape, lambda axis: axis, {position: everywhere(shape[position])})
        return (tuple(Reading(number, (along, forced)[number]) for number in range(len(use.shapes))),)

    def choice_bound(self, signature: Signature) -> Bound:
        return Bound(signature.axes["position"], 1)

    def deterministic(self) -> Op:
        return TopK(k=1, axis=self.axis)


class StopGradient(Op, name="stop_gradient", synonyms="detach no_grad stopgrad"):
    """The value itself, without gradient."""

    example = "input x: float[5, 6] y = x * (x -> stop_gradient) output y"
    narrows = "x"
    indexing = read_pointwise


class TrainingOrInference(Op, name="training_or_inference", synonyms="train_or_eval in_train_phase is_training"):
    """The first value in training, the second in inference: `(a, b) -> training_or_inference`.

    An export takes the second value and removes whatever only the first needs.
    """

    nondifferentiable = ("inference",)
    example = "input x: float[5, 6] y = (x -> relu, x) -> training_or_inference output y"
    operands = (Operand("training", "..."), Operand("inference", "..."))
    outside_training = "inference"
    takes_ids = True
    propagate = join_bounds

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        training, inference = found
        if not training.meets(inference):
            raise Misfit(f"in training it would be {training}, in inference {inference}", "give both one type")
        return (inference,)

    def indexing(self, use: Use) -> Indexing:
        """Training reads the first value alone; a pass replaces the op in inference."""
        return (read_pointwise(self, use)[0][:1],)
