"""Convolution, pooling and upsampling of images: channels, height, width."""

from __future__ import annotations

from fractions import Fraction

from modgraph.declare import Operand, TorchModule, Weight, own_module, setting, uniform
from modgraph.declare.indexing import Indexing, Place, Reading, Use, everywhere, move_axes, place_at, split_index
from modgraph.ops.op import Op
from modgraph.ops.zeros import lose_bound
from modgraph.types import Axes, Misfit, infer_axis

IMAGE = (Operand("x", "... C H W", help="an image has the axes channels, height, width"),)
SAME = 'number of zeros on each side; "same" keeps the size of the image, an odd number puts more right and below'


def extent(length: int, kernel: int, stride: int, padding: int, what: str) -> int:
    """Count the places of a window that reaches over `kernel` places along an axis."""
    padded = length + 2 * padding
    if kernel > padded:
        reason = f"a window of {kernel} is larger than the image's {what} of {padded}"
        raise Misfit(reason, "lower kernel, or raise padding")
    return (padded - kernel) // stride + 1


def check_groups(groups: int, channels: int, width: int) -> None:
    """Raise `Misfit` where groups do not divide channels and filters."""
    if channels % groups or width % groups:
        reason = f"{groups} groups divide neither {channels} channels and {width} filters evenly"
        raise Misfit(reason, "choose groups that divide both")


def read_window(use: Use, kernel: int, stride: int, before: int, channels: Place) -> Indexing:
    """Read a window over `kernel` places of height and width that begins `before` places earlier, and some channels."""
    window = {axis: Place(((axis, stride),), -before, kernel - 1 - before) for axis in (-2, -1)}
    return ((Reading(0, move_axes(use.shapes[0], lambda axis: axis, {-3: channels, **window})),),)


def filters(window: str, when: str = "") -> tuple[Weight, ...]:
    """Declare the weights of `width` filters over a window of these axes; `when` is the setting that adds the bias."""
    return Weight("weight", f"width {window}", uniform(window)), Weight("bias", "width", uniform(window), when=when)


LAST = {each: each for each in ("groups", "bias", "dilation")}


class Conv(Op, name="conv", synonyms="conv2d convolution convolve"):
    """Convolve an image with `width` filters of `kernel` × `kernel`."""

    torch_arguments = (
        "in_channels= out_channels=width kernel_size=kernel stride=stride padding=padding dilation=dilation"
    )
    example = "input x: float[4, 8, 6] y = x -> conv(6, stride=2, padding=2, groups=2, dilation=2) output y"
    operands = IMAGE
    results = ("... width H_out W_out",)
    weights = filters("C_group kernel kernel", when="bias")
    module = TorchModule("modgraph.nn.Conv2d", *"C width kernel stride padding".split(), **LAST)

    width: int = setting(min=1, doc="number of filters")
    kernel: int = setting(3, min=1, doc="side length of the window")
    stride: int = setting(1, min=1, doc="stride of the window")
    padding: int | str = setting(0, min=0, choices=("same",), doc=SAME)
    groups: int = setting(1, min=1, doc="number of groups; channels of different groups do not mix")
    bias: bool = setting(True, doc="add a learned bias to each filter")
    dilation: int = setting(1, min=1, doc="distance of neighbours in the window")

    @property
    def reach(self) -> int:
        """The number of places from the first to the last of the window."""
        return self.dilation * (self.kernel - 1) + 1

    @infer_axis
    def C_group(self, C: int) -> int:
        return C // self.groups

    @infer_axis
    def H_out(self, H: int) -> int:
        return H if isinstance(self.padding, str) else extent(H, self.reach, self.stride, self.padding, "height")

    @infer_axis
    def W_out(self, W: int) -> int:
        return W if isinstance(self.padding, str) else extent(W, self.reach, self.stride, self.padding, "width")

    def check(self, axes: Axes) -> None:
        if isinstance(self.padding, str) and self.stride != 1:
            raise Misfit('padding="same" goes with a step of 1', "give its number of zeros, or leave stride out")
        channels = axes.resolve("C")
        if self.width == channels:
            self._check_window(min(axes.resolve("H"), axes.resolve("W")))
        check_groups(self.groups, channels, self.width)

    def _check_window(self, length: int) -> None:
        """Raise `Misfit` where the arguments seem to begin with the number of input channels."""
        padding = 0 if isinstance(self.padding, str) else self.padding
        if self.reach > length + 2 * padding:
            further = [padding] * bool(padding) + [self.groups] * (padding > 0 and self.groups > 1)
            meant = ", ".join(map(str, (self.kernel, self.stride, *further)))
            reason = f"a window of {self.reach} is larger than the image"
            raise Misfit(reason, f"lower kernel; without the channels, which conv infers: conv({meant})")

    def indexing(self, use: Use) -> Indexing:
        before = (self.reach - 1) // 2 if isinstance(self.padding, str) else self.padding
        return read_window(use, self.reach, self.stride, before, everywhere(use.shapes[0][-3]))

    def macs(self, C_group: int, H_out: int, W_out: int) -> int:
        return self.width * C_group * self.kernel**2 * H_out * W_out


class ConvTranspose(Op, name="conv_transpose", synonyms="conv_transpose2d conv2d_transpose deconvolution deconv"):
    """Convolve an image backwards, the transpose of `conv`: each place adds `width` filters, times its channels, to the
    window that `conv` would read there.

    A side of n becomes (n − 1) · stride − 2 · padding + dilation · (kernel − 1) + 1 + output_padding long:
    `conv_transpose(8, kernel=2, stride=2)` doubles it.
    """

    torch_arguments = "in_channels= out_channels=width kernel_size=kernel stride=stride padding=padding"
    example = "input x: float[4, 3, 2] y = x -> conv_transpose(6, stride=2, padding=1, groups=2) output y"
    operands = IMAGE
    results = ("... width H_out W_out",)
    weights = (
        Weight("weight", "C W_group kernel kernel", uniform("W_group kernel kernel")),
        Weight("bias", "width", uniform("W_group kernel kernel"), when="bias"),
    )
    module = TorchModule(
        "modgraph.nn.ConvTranspose2d",
        *"C width kernel stride padding".split(),
        output_padding="output_padding",
        **LAST,
    )

    width: int = setting(min=1, doc="number of filters")
    kernel: int = setting(3, min=1, doc="side length of the window")
    stride: int = setting(1, min=1, doc="distance of the windows of neighbours")
    padding: int = setting(0, min=0, doc="number of places that are cut off on each side")
    output_padding: int = setting(0, min=0, doc="number of places that are added right and below")
    groups: int = setting(1, min=1, doc="number of groups; channels of different groups do not mix")
    bias: bool = setting(True, doc="add a learned bias to each filter")
    dilation: int = setting(1, min=1, doc="distance of neighbours in the window")

    @infer_axis
    def W_group(self) -> int:
        return self.width // self.groups

    @infer_axis
    def H_out(self, H: int) -> int:
        return self._measure(H)

    @infer_axis
    def W_out(self, W: int) -> int:
        return self._measure(W)

    def _measure(self, length: int) -> int:
        """Return how long a side becomes."""
        reach = self.dilation * (self.kernel - 1) + 1
        return (length - 1) * self.stride - 2 * self.padding + reach + self.output_padding

    def check(self, axes: Axes) -> None:
        check_groups(self.groups, axes.resolve("C"), self.width)
        if self.output_padding >= max(self.stride, self.dilation):
            reason = f"output_padding={self.output_padding} is not below stride and dilation"
            raise Misfit(reason, f"the most is output_padding={max(self.stride, self.dilation) - 1}")
        if min(axes.resolve("H_out"), axes.resolve("W_out")) < 1:
            raise Misfit(f"padding={self.padding} cuts off the whole image", "lower padding")

    def indexing(self, use: Use) -> Indexing:
        step, reach = Fraction(1, self.stride), self.dilation * (self.kernel - 1)
        low, high = (self.padding - reach) * step, self.padding * step
        window = {axis: Place(((axis, step),), low, high) for axis in (-2, -1)}
        changed = {-3: everywhere(use.shapes[0][-3]), **window}
        return ((Reading(0, move_axes(use.shapes[0], lambda axis: axis, changed)),),)

    def macs(self, C: int, H: int, W: int, W_group: int) -> int:
        return C * W_group * self.kernel**2 * H * W


class _Window(Op):
    """Base of ops with a window that slides over each channel."""

    torch_arguments = "kernel_size=kernel stride=stride padding=padding"
    operands = IMAGE
    results = ("... C H_out W_out",)
    propagate = lose_bound

    kernel: int = setting(2, min=1, doc="side length of the window")
    stride: int | None = setting(None, min=1, doc="stride of the window; its side length if not given")
    padding: int = setting(0, min=0, doc="number of places outside the image on each side, at most half a window")

    @infer_axis
    def step(self) -> int:
        return self.stride or self.kernel

    @infer_axis
    def H_out(self, H: int) -> int:
        return extent(H, self.kernel, self.stride or self.kernel, self.padding, "height")

    @infer_axis
    def W_out(self, W: int) -> int:
        return extent(W, self.kernel, self.stride or self.kernel, self.padding, "width")

    def check(self, axes: Axes) -> None:
        if 2 * self.padding > self.kernel:
            advice = f"the most is padding={self.kernel // 2}"
            raise Misfit(f"padding={self.padding} is more than half of a window of {self.kernel}", advice)

    def indexing(self, use: Use) -> Indexing:
        return read_window(use, self.kernel, self.stride or self.kernel, self.padding, place_at(-3))


class MaxPool(_Window, name="max_pool", synonyms="maxpool2d pool2d"):
    """The largest value of each window."""

    example = "input x: float[4, 8, 6] y = x -> max_pool(3, stride=2, padding=1) output y"
    module = TorchModule("modgraph.nn.MaxPool2d", "kernel", "step", "padding")


class AvgPool(_Window, name="avg_pool", synonyms="average_pool avgpool2d"):
    """The mean of each window; places outside the image are zeros."""

    example = "input x: float[4, 8, 6] y = x -> avg_pool(2, padding=1) output y"
    module = TorchModule("modgraph.nn.AvgPool2d", "kernel", "step", "padding")


class Upsample(Op, name="upsample", synonyms="interpolate resize upsampling2d"):
    """Enlarge images: `upsample(2)` doubles height and width, `upsample(size=[7, 9])` makes them 7 and 9.

    "nearest" repeats the pixel that begins at or before a place, "bilinear" interpolates between the centres of pixels,
    as torch does with `align_corners=False`.
    """

    example = 'input x: float[4, 3, 2] y = x -> upsample(2, mode="bilinear") output y'
    operands = IMAGE
    results = ("... C H_out W_out",)
    module = own_module("H_out", "W_out", "mode")
    affine = True
    propagate = lose_bound

    scale: int | None = setting(None, min=1, doc="by how much height and width grow")
    size: tuple[int, ...] | None = setting(None, min=1, doc="height and width of the result, in place of scale")
    mode: str = setting("nearest", choices=("nearest", "bilinear"), doc="how pixels between others are made")

    @infer_axis
    def H_out(self, H: int) -> int:
        return self.size[0] if self.size else H * (self.scale or 1)

    @infer_axis
    def W_out(self, W: int) -> int:
        return self.size[-1] if self.size else W * (self.scale or 1)

    def check(self, axes: Axes) -> None:
        if (self.scale is None) == (self.size is None):
            raise Misfit("it takes a scale or a size", "for example: upsample(2), upsample(size=[7, 9])")
        height, width = axes.resolve("H"), axes.resolve("W")
        if self.size is not None and len(self.size) != 2:
            raise Misfit(f"a size is height and width, not {[*self.size]}", f"for example: size=[{height}, {width}]")
        if axes.resolve("H_out") < height or axes.resolve("W_out") < width:
            reason = f"an image of {height} × {width} would become smaller"
            raise Misfit(reason, "pool it: avg_pool(2)")

    def indexing(self, use: Use) -> Indexing:
        (shape,), (result,) = use.shapes, use.signature.results
        changed = {}
        for axis in (-2, -1):
            step = Fraction(shape[axis].size or 1, result.shape[axis].size or 1)
            offset = step / 2 - Fraction(1, 2)
            near = 1 / Fraction(step.denominator) - 1, Fraction(0)
            changed[axis] = Place(((axis, step),), *(near if self.mode == "nearest" else (offset - 1, offset + 1)))
        return ((Reading(0, move_axes(shape, lambda axis: axis, changed)),),)


class Tokens(Op, name="tokens", synonyms="tokenize"):
    """Turn an image into tokens: one per position in row-major order, as wide as the image has channels."""

    example = "input x: float[4, 8, 6] y = x -> tokens output y"
    operands = IMAGE
    results = ("... N C",)
    propagate = lose_bound
    tokenizes = True

    @infer_axis
    def N(self, H: int, W: int) -> int:
        return H * W

    def grid(self, H: int, W: int) -> tuple[int, int]:
        return H, W

    def indexing(self, use: Use) -> Indexing:
        (shape,) = use.shapes
        rows, columns = split_index(-2, (shape[-2].size or 1, shape[-1].size or 1))
        return ((Reading(0, move_axes(shape, lambda axis: axis + 1, {-3: place_at(-1), -2: rows, -1: columns})),),)


class PatchEmbed(Op, name="patch_embed", synonyms="patchify patches patch_embedding"):
    """Split an image into square patches and project each to a token (a convolution with equal kernel and stride)."""

    example = "input x: float[4, 8, 6] y = x -> patch_embed(2, 5) output y"
    operands = IMAGE
    results = ("... N width",)
    weights = filters("C patch patch")
    module = own_module("C", "width", "patch")
    tokenizes = True

    patch: int = setting(min=1, doc="side length of a patch")
    width: int = setting(min=1, doc="width of a token")

    @infer_axis
    def N(self, H: int, W: int) -> int:
        rows, columns = self.grid(H, W)
        return rows * columns

    def grid(self, H: int, W: int) -> tuple[int, int]:
        return H // self.patch, W // self.patch

    def check(self, axes: Axes) -> None:
        height, width = axes.resolve("H"), axes.resolve("W")
        if height % self.patch or width % self.patch:
            reason = f"patches of {self.patch} do not tile an image of {height} × {width}"
            raise Misfit(reason, "choose a patch that divides height and width")

    def indexing(self, use: Use) -> Indexing:
        (shape,), size, wide = use.shapes, self.patch, self.patch - 1
        parts = split_index(-2, self.grid(shape[-2].size or 1, shape[-1].size or 1))
        rows, columns = (Place(tuple((each, size * factor) for each, factor in part.terms), 0, wide) for part in parts)
        changed = {-3: everywhere(shape[-3]), -2: rows, -1: columns}
        return ((Reading(0, move_axes(shape, lambda axis: axis + 1, changed)),),)

    def macs(self, N: int, C: int) -> int:
        return N * self.width * C * self.patch**2
