"""Ops that read other places along an axis: shift, flip and one-dimensional convolution."""

from __future__ import annotations

from dataclasses import replace

from modgraph.declare import Operand, Signature, Weight, axis_setting, own_module, setting, uniform
from modgraph.declare.indexing import Indexing, Place, Reading, Use, everywhere, move_axes, place_at
from modgraph.ops.along_axis import AlongAxis
from modgraph.ops.op import Op
from modgraph.ops.zeros import keep_bound
from modgraph.types import Axes, Axis, Misfit, TensorType, infer_axis, replace_axes

ZEROS = 'number of zeros on each side; "same" keeps the length, and so does "causal", where no place reads later ones'


class Shift(AlongAxis, name="shift", synonyms="delay lag"):
    """Shift values along an axis, by default the tokens of [N, D]: y[t] = x[t − n], and zero where there is none.

    A positive n moves towards later places, a negative one towards earlier places. Padding gives zeros.
    """

    torch_arguments = ""
    example = "input x: float[5, 6] y = x -> shift(2) output y"
    module = own_module("position", "n")
    affine = True
    takes_ids = True
    propagate = keep_bound

    n: int = setting(doc="number of places, negative towards earlier ones")
    axis: int | str = axis_setting(-2)

    @property
    def message_rank(self) -> int | None:
        return -self.axis if isinstance(self.axis, int) else None

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        return found

    def list_masked_axes(self, signature: Signature) -> tuple[Axis, ...]:
        return (signature.operands[0].shape[signature.axes["position"]],) if self.n < 0 else ()

    def indexing(self, use: Use) -> Indexing:
        position = use.signature.axes["position"]
        shifted = {position: place_at(position, -self.n, -self.n)}
        return ((Reading(0, move_axes(use.shapes[0], lambda axis: axis, shifted)),),)


class Flip(AlongAxis, name="flip", synonyms="reverse reverse_sequence fliplr flipud"):
    """Reverse an axis, by default the tokens of [N, D]: y[t] = x[n − 1 − t] for n places without padding.

    Padding stays behind, and gives zeros.
    """

    torch_arguments = ""
    example = "input x: float[5, 6] y = x -> flip output y"
    module = own_module("position")
    affine = True
    takes_ids = True
    propagate = keep_bound

    axis: int | str = axis_setting(-2)

    @property
    def message_rank(self) -> int | None:
        return -self.axis if isinstance(self.axis, int) else None

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        return found

    def indexing(self, use: Use) -> Indexing:
        (shape,), position = use.shapes, use.signature.axes["position"]
        along = shape[position]
        last = None if along.size is None else along.size - 1
        reversed_ = everywhere(along) if last is None else Place(((position, -1),), last, last)
        return ((Reading(0, move_axes(shape, lambda axis: axis, {position: reversed_})),),)


class Conv1d(Op, name="conv1d", synonyms="causal_conv1d temporal_conv tcn"):
    """Convolve along an axis of tokens [N, D] with `width` filters of `kernel` places, over all D numbers of each.

    y[t] = b + Σ w[k] x[t + dilation · k − p] for p zeros in front. An axis of any length keeps its length, with
    padding="causal" or "same", and its padding is never read. With `conv1d(D, groups=D)` each filter reads one number.
    The weight has the axes of torch's Conv1d: width, D / groups, kernel.
    """

    torch_arguments = (
        "in_channels= out_channels=width kernel_size=kernel stride=stride padding=padding dilation=dilation"
    )
    example = 'input x: float[5, 6] y = x -> conv1d(4, padding="causal", dilation=2, groups=2) output y'
    operands = (Operand("x", "... D"),)
    results = ("... width",)
    along = True
    weights = (
        Weight("weight", "width D_group kernel", uniform("D_group kernel")),
        Weight("bias", "width", uniform("D_group kernel"), when="bias"),
    )
    module = own_module(*"D width kernel position stride padding dilation groups bias".split())
    affine = True

    width: int = setting(min=1, doc="number of filters")
    kernel: int = setting(3, min=1, doc="number of places that a filter reads")
    stride: int = setting(1, min=1, doc="stride of the window")
    padding: int | str = setting(0, min=0, choices=("same", "causal"), doc=ZEROS)
    dilation: int = setting(1, min=1, doc="distance of the places that a filter reads")
    groups: int = setting(1, min=1, doc="number of groups; numbers of different groups do not mix")
    bias: bool = setting(True, doc="add a learned bias to each filter")
    axis: int | str = axis_setting(-2)

    @property
    def message_rank(self) -> int | None:
        return -self.axis if isinstance(self.axis, int) else None

    @property
    def keeps_length(self) -> bool:
        """Whether the result is as long as the operand, whatever its length."""
        zeros = self.padding if isinstance(self.padding, str) else 2 * self.padding
        return self.stride == 1 and (isinstance(zeros, str) or zeros == self.dilation * (self.kernel - 1))

    @infer_axis
    def D_group(self, D: int) -> int:
        return D // self.groups

    @infer_axis
    def N_out(self, N: int) -> int:
        if isinstance(self.padding, str):
            return N
        return (N + 2 * self.padding - self.dilation * (self.kernel - 1) - 1) // self.stride + 1

    def list_masked_axes(self, signature: Signature) -> tuple[Axis, ...]:
        reads_later = self.padding != "causal" and self.kernel > 1
        return (signature.operands[0].shape[signature.axes["position"]],) if reads_later else ()

    def check(self, axes: Axes) -> None:
        lead, place, channels = axes.lead or (), axes["position"] + 1, axes.resolve("D")
        if not place:
            advice = "put the numbers of each place last: -> transpose -> conv1d(…) -> transpose"
            raise Misfit("the last axis has the numbers that a filter reads, so it convolves along another", advice)
        along = axes.bound["N"] = lead[place]
        axes.lead = (*lead[: len(lead) + place], *lead[len(lead) + place + 1 :])
        if isinstance(self.padding, str) and self.stride != 1:
            raise Misfit(
                f'padding="{self.padding}" goes with a stride of 1', "give a number of zeros, or leave stride out"
            )
        if channels % self.groups or self.width % self.groups:
            raise Misfit(f"{self.groups} groups do not divide {channels} channels and {self.width} filters")
        if along.is_padded and not self.keeps_length:
            reason = f'the axis "{along}" has no fixed length, and the result would have another'
            raise Misfit(reason, f'keep it: {replace(self, stride=1, padding="causal")}, or padding="same"')
        if not along.is_padded and axes.resolve("N_out") < 1:
            reach = self.dilation * (self.kernel - 1) + 1
            raise Misfit(
                f"a window of {reach} places is longer than the axis of {along.size}", "lower kernel, or raise padding"
            )

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        along = (
            axes["N"] if self.keeps_length or axes.resolve("N_out") == axes.size("N") else Axis(axes.resolve("N_out"))
        )
        x = replace_axes(found[0], axes["position"], [along])
        return (replace_axes(x, -1, [self.width]),)

    def indexing(self, use: Use) -> Indexing:
        (shape,), position, reach = use.shapes, use.signature.axes["position"], self.dilation * (self.kernel - 1)
        named = {"causal": reach, "same": reach // 2}
        before = named[self.padding] if isinstance(self.padding, str) else self.padding
        window = Place(((position, self.stride),), -before, reach - before)
        changed = {position: window, -1: everywhere(shape[-1])}
        return ((Reading(0, move_axes(shape, lambda axis: axis, changed)),),)

    def macs(self, N_out: int, D_group: int) -> int:
        return N_out * self.width * D_group * self.kernel
