"""Convolution and pooling over images: channels, height, width."""

from __future__ import annotations

from modgraph.declare import Operand, TorchModule, Weight, own_module, setting, uniform
from modgraph.declare.indexing import Indexing, Place, Reading, Use, everywhere, move_axes, place_at, split_index
from modgraph.ops.op import Op
from modgraph.ops.zeros import lose_bound
from modgraph.types import Axes, Misfit, infer_axis

IMAGE = (Operand("x", "... C H W", help="an image has the axes channels, height, width"),)
SAME = 'number of zeros on each side; "same" keeps the size of the image, an odd number puts more right and below'


def extent(length: int, kernel: int, stride: int, padding: int, what: str) -> int:
    """Count the places of a window of `kernel` along an axis."""
    padded = length + 2 * padding
    if kernel > padded:
        reason = f"a window of {kernel} is larger than the image's {what} of {padded}"
        raise Misfit(reason, "lower kernel, or raise padding")
    return (padded - kernel) // stride + 1


def read_window(use: Use, kernel: int, stride: int, before: int, channels: Place) -> Indexing:
    """Read a window along height and width that begins `before` places earlier, and some channels."""
    window = {axis: Place(((axis, stride),), -before, kernel - 1 - before) for axis in (-2, -1)}
    return ((Reading(0, move_axes(use.shapes[0], lambda axis: axis, {-3: channels, **window})),),)


def filters(window: str, when: str = "") -> tuple[Weight, ...]:
    """Declare the weights of `width` filters over a window of these axes; `when` is the setting that adds the bias."""
    return Weight("weight", f"width {window}", uniform(window)), Weight("bias", "width", uniform(window), when=when)


class Conv(Op, name="conv", synonyms="conv2d convolution convolve"):
    """Convolve an image with `width` filters of `kernel` × `kernel`."""

    torch_arguments = "in_channels= out_channels=width kernel_size=kernel stride=stride padding=padding"
    example = "input x: float[4, 8, 6] y = x -> conv(6, kernel=3, stride=2, padding=1, groups=2) output y"
    operands = IMAGE
    results = ("... width H_out W_out",)
    weights = filters("C_group kernel kernel", when="bias")
    module = TorchModule("modgraph.nn.Conv2d", *"C width kernel stride padding".split(), groups="groups", bias="bias")

    width: int = setting(min=1, doc="number of filters")
    kernel: int = setting(3, min=1, doc="side length of the window")
    stride: int = setting(1, min=1, doc="stride of the window")
    padding: int | str = setting(0, min=0, choices=("same",), doc=SAME)
    groups: int = setting(1, min=1, doc="number of groups; channels of different groups do not mix")
    bias: bool = setting(True, doc="add a learned bias to each filter")

    @infer_axis
    def C_group(self, C: int) -> int:
        return C // self.groups

    @infer_axis
    def H_out(self, H: int) -> int:
        return H if isinstance(self.padding, str) else extent(H, self.kernel, self.stride, self.padding, "height")

    @infer_axis
    def W_out(self, W: int) -> int:
        return W if isinstance(self.padding, str) else extent(W, self.kernel, self.stride, self.padding, "width")

    def check(self, axes: Axes) -> None:
        if isinstance(self.padding, str) and self.stride != 1:
            raise Misfit('padding="same" goes with a step of 1', "give its number of zeros, or leave stride out")
        channels = axes.resolve("C")
        if self.width == channels:
            self._check_window(min(axes.resolve("H"), axes.resolve("W")))
        if channels % self.groups or self.width % self.groups:
            reason = f"{self.groups} groups divide neither {channels} channels and {self.width} filters evenly"
            raise Misfit(reason, "choose groups that divide both")

    def _check_window(self, length: int) -> None:
        """Raise `Misfit` where the arguments seem to begin with the number of input channels."""
        padding = 0 if isinstance(self.padding, str) else self.padding
        if self.kernel > length + 2 * padding:
            further = [padding] * bool(padding) + [self.groups] * (padding > 0 and self.groups > 1)
            meant = ", ".join(map(str, (self.kernel, self.stride, *further)))
            reason = f"a window of {self.kernel} is larger than the image"
            raise Misfit(reason, f"lower kernel; without the channels, which conv infers: conv({meant})")

    def indexing(self, use: Use) -> Indexing:
        before = (self.kernel - 1) // 2 if isinstance(self.padding, str) else self.padding
        return read_window(use, self.kernel, self.stride, before, everywhere(use.shapes[0][-3]))

    def macs(self, C_group: int, H_out: int, W_out: int) -> int:
        return self.width * C_group * self.kernel**2 * H_out * W_out


class _Window(Op):
    """Base of ops with a window that slides over each channel."""

    torch_arguments = "kernel_size=kernel stride=stride"
    operands = IMAGE
    results = ("... C H_out W_out",)
    propagate = lose_bound

    kernel: int = setting(2, min=1, doc="side length of the window")
    stride: int | None = setting(None, min=1, doc="stride of the window; its side length if not given")

    @infer_axis
    def step(self) -> int:
        return self.stride or self.kernel

    def indexing(self, use: Use) -> Indexing:
        return read_window(use, self.kernel, self.stride or self.kernel, 0, place_at(-3))

    @infer_axis
    def H_out(self, H: int) -> int:
        return extent(H, self.kernel, self.stride or self.kernel, 0, "height")

    @infer_axis
    def W_out(self, W: int) -> int:
        return extent(W, self.kernel, self.stride or self.kernel, 0, "width")


class MaxPool(_Window, name="max_pool", synonyms="maxpool2d pool2d"):
    """The largest value of each window."""

    example = "input x: float[4, 8, 6] y = x -> max_pool(3, stride=2) output y"
    module = TorchModule("modgraph.nn.MaxPool2d", "kernel", "step")


class AvgPool(_Window, name="avg_pool", synonyms="average_pool avgpool2d"):
    """The mean of each window."""

    example = "input x: float[4, 8, 6] y = x -> avg_pool(2) output y"
    module = TorchModule("modgraph.nn.AvgPool2d", "kernel", "step")


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
