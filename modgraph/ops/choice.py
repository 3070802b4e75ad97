"""Choices: values of ones and zeros along an axis."""

from __future__ import annotations

from modgraph.declare import Operand, Signature, TorchModule, axis_setting, own_module, position_of, setting
from modgraph.declare.indexing import (
    Indexing,
    Reading,
    Use,
    align_places,
    everywhere,
    insert_axis,
    move_axes,
    place_at,
    read_along,
    read_nothing,
    read_pointwise,
)
from modgraph.ops.along_axis import AlongAxis
from modgraph.ops.arithmetic import align, align_within
from modgraph.ops.op import Op
from modgraph.ops.shape import axis_called
from modgraph.ops.zeros import Bound
from modgraph.types import Axes, Misfit, Shape, TensorType, format_shape, replace_axes


class TopK(Op, name="top_k", synonyms="top_k_mask"):
    """One at the k largest values along an axis, else zero; without gradient. Of equal values the first is larger.

    Padding is never chosen; a sequence shorter than k is chosen whole. A value times a choice along the modules of a
    pool is zero for other modules, so a route by it computes only the chosen modules.
    """

    example = "input x: float[5, 6] y = x -> top_k(2) output y"
    module = TorchModule("modgraph.nn.TopKMask", "position", "k")
    masks = "position"
    along = True
    indexing = read_along()

    k: int = setting(1, min=1, doc="number of places to choose")
    axis: int | str = axis_setting(-1)

    def check(self, axes: Axes) -> None:
        axis = (axes.lead or ())[axes["position"]]
        if not axis.name and axis.size is not None and self.k > axis.size:
            raise Misfit(f"it chooses k={self.k} of {axis}", f"lower k to {axis} or less")

    def choice_bound(self, signature: Signature) -> Bound:
        return Bound(signature.axes["position"], self.k)


class MaskedSoftmax(AlongAxis, name="masked_softmax", synonyms="sparse_softmax softmax_among"):
    """exp(x) / Σ exp(x) over the places where a choice is not zero; zero at other places.

    The choice repeats along axes that it lacks. A third operand, without the axis, is a sink: a further logit in the
    sum, whose share goes nowhere.
    """

    nondifferentiable = ("choice",)
    takes_logits = "x"
    example = "input x: float[5, 6] y = (x, x -> top_k(2)) -> masked_softmax output y"
    operands = (Operand("x", "..."), Operand("choice", "..."), Operand("sink", "...", optional=True))
    module = own_module("position", lacks="lacks", orders="orders")

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        if len(found) not in (2, 3):
            raise Misfit(f"it takes scores, their choice and perhaps a sink, not {len(found)} operands")
        x, (result, (_, choice)) = found[0], align(found[:2], self.name)
        if len(result.shape) != len(x.shape):
            reason = f"the choice {format_shape(found[1].shape)} has axes that the scores {format_shape(x.shape)} lack"
            raise Misfit(reason, _explain_lacking(x.shape, result.shape), 1)
        axes.lead, axes.bound["rank"] = result.shape, len(x.shape)
        axes.bound["position"] = position_of(self.axis, result, self.name)
        aligned = [choice]
        if len(found) == 3:
            rest = replace_axes(result, axes.bound["position"])
            aligned.append(align_within(found[2], rest, self.name, "the sink", 2))
        axes.bound["lacks"] = tuple(each.lacks for each in aligned)
        axes.bound["orders"] = tuple(each.order for each in aligned)
        return (result,)

    def indexing(self, use: Use) -> Indexing:
        """Only places of the choice count; a sink lacks their axis."""
        result, position = use.signature.results[0].shape, use.signature.axes["position"]
        along = everywhere(result[position], "along")

        def read(number: int, shape: Shape) -> Reading:
            places = (along if each == place_at(position) else each for each in align_places(shape, result))
            return Reading(number, tuple(places), guards=number == 1)

        readings = [read(number, shape) for number, shape in enumerate(use.shapes[:2])]
        for shape in use.shapes[2:]:
            rest = align_places(shape, (*result[:position], *result[position:][1:]))
            readings.append(Reading(2, tuple(insert_axis(each, position) for each in rest)))
        return (tuple(readings),)

    def zero_with(self) -> tuple[int, ...]:
        return (1,)


class WithinCapacity(Op, name="within_capacity", synonyms="capacity capacity_factor token_dropping expert_capacity"):
    """Limit how many tokens each module takes in training; outside training, keep the whole choice.

    A module takes at most k · int(share · ⌈tokens / modules⌉) tokens of the whole batch, over all processes. Only
    tokens that choose a module count. `priority` decides which tokens come first: those with a module's largest scores,
    or all first choices before any second choice, each by the token's largest score (batch prioritised routing,
    Riquelme et al., 2021, section 4). Of equal scores the first comes first.
    """

    nondifferentiable = ("scores", "choice")
    example = "input x: float[5, 6] y = (x -> softmax, x -> top_k) -> within_capacity(1.25) output y"
    operands = (Operand("scores", "..."), Operand("choice", "..."))
    module = own_module("position", "share", "k", "priority")
    along = True
    one_kind = True
    masks = "..."
    masks_each = True
    over_batch = True
    outside_training = "choice"
    narrows = "choice"

    share: float = setting(
        min=0, doc="capacity of a module, relative to an even share of the tokens, for each of the k choices"
    )
    k: int = setting(1, min=1, doc="how many modules a token chooses")
    priority: str = setting("score", choices=("score", "first_choice"), doc="which tokens come first")
    axis: int | str = axis_setting(-1)

    def check(self, axes: Axes) -> None:
        modules = (axes.lead or ())[axes["position"]]
        if modules.is_padded:
            reason = f'examples differ in their length along "{modules}", so it is no axis of modules'
            raise Misfit(reason, "name the axis of modules: within_capacity(share, axis=…)", 0)

    def indexing(self, use: Use) -> Indexing:
        """Tokens compete; of equal scores the first come first, along the outermost axis."""
        (shape, *_), first = use.shapes, -len(use.shapes[0])
        outermost = {first: place_at(first, None, 0)} if use.tied and len(shape) > 1 else {}
        places = tuple(outermost.get(axis) or everywhere(shape[axis]) for axis in range(first, 0))
        return (tuple(Reading(number, places) for number in range(len(use.shapes))),)


def _explain_lacking(scores: Shape, result: Shape) -> str:
    """Explain how scores get the axis that their choice has and they lack."""
    lacking = next(axis for axis in result if axis not in scores)
    for axis in scores:
        if axis.is_padded and lacking.is_padded and axis.lengths == lacking.lengths:
            return f'read the keys again before their product: -> rename({axis.name}="{lacking.name}")'
    if lacking.is_padded:
        return f'repeat the scores along it: (scores, choice) -> expand("{lacking.name}", at=-1)'
    return f'repeat the scores along it: scores -> new_axis({lacking.size}, axis="{lacking.name}", at=-1)'


class Above(Op, name="above", synonyms="threshold larger_than heaviside step"):
    """One where a value exceeds a threshold; zero elsewhere and in padding; without gradient.

    Any number of places may be chosen: a route by it computes only modules above the threshold.
    """

    example = "input x: float[5, 6] y = x -> above(0.5) output y"
    module = own_module("threshold")
    along = True
    masks = "..."
    indexing = read_pointwise

    threshold: float = setting(0.0, doc="the threshold; a value equal to it is not chosen")
    axis: int | str = axis_setting(-1)

    def choice_bound(self, signature: Signature) -> Bound:
        return Bound(signature.axes["position"])


class FirstPlaces(Op, name="first_places", synonyms="first_k"):
    """A choice for each slot: slot i takes place i of the last axis, whatever its value.

    x[…, modules] gives […, slots, modules]: the choice of a baseline without a router.
    """

    example = 'input x: float[5, 6] y = x -> first_places(2, axis="slot") output y'
    operands = (Operand("x", "... M"),)
    module = own_module("slots")
    indexing = read_nothing

    slots: int = setting(min=1, doc="number of slots")
    axis: str = setting("", axis=True, doc="name of the axis of slots")

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        places = axes.resolve("M")
        if self.slots > places:
            raise Misfit(f"there are {places} places for slots={self.slots}", "lower slots, or raise the pool's size")
        return (replace_axes(found[0], -1, [axis_called(self.slots, self.axis)], 0),)

    def choice_bound(self, signature: Signature) -> Bound:
        return Bound(-1, 1)


class Dispatch(AlongAxis, name="dispatch", synonyms="compact dispatch_mask"):
    """Assign the chosen places along an axis to slots, in order: slot i takes the i-th chosen place.

    A choice x[…, tokens] gives […, slots, tokens]. Unused slots are zero; places beyond the last slot are dropped.
    `x by place over time` gathers the chosen tokens, `y by place over slot` scatters them back (the dispatch mask of
    GShard, Lepikhin et al., 2021).
    """

    example = 'input x: float[5] y = x -> top_k(2) -> dispatch(2, into="slot") output y'
    module = own_module("position", "slots")

    slots: int = setting(min=1, doc="number of slots")
    into: str = setting("", axis=True, doc="name of the axis of slots")

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        return (replace_axes(found[0], axes["position"], [axis_called(self.slots, self.into)], 0),)

    def indexing(self, use: Use) -> Indexing:
        """The slot of a place depends on the choices before it."""
        position = use.signature.axes["position"]
        along = {position: place_at(position, None, 0)}
        return ((Reading(0, move_axes(use.shapes[0], lambda axis: axis - (axis < position), along)),),)

    def choice_bound(self, signature: Signature) -> Bound:
        return Bound(signature.axes["position"], 1)


class StraightThrough(Op, name="straight_through", synonyms="ste straight_through_estimator hard_gate binary_gate"):
    """The value of the second operand with the gradient of the first: `(soft, hard) -> straight_through` (Bengio et
    al., 2013).

    A gate of temperature t that is one or zero and learns like the softmax: `(scores / t -> softmax, scores -> draw) ->
    straight_through`. Places outside the choice get a gradient too.
    """

    nondifferentiable = ("hard",)
    example = "input x: float[5, 6] y = (x -> softmax, x -> top_k) -> straight_through output y"
    operands = (Operand("soft", "..."), Operand("hard", "..."))
    outside_training = "hard"
    narrows = "hard"
    one_kind = True
    indexing = read_pointwise
