"""Norms and dropout."""

from __future__ import annotations

from modgraph.declare import ONES, ZEROS, TorchModule, Weight, own_module, setting
from modgraph.declare.indexing import Indexing, Use, match_patterns, read_pointwise
from modgraph.ops.image import IMAGE
from modgraph.ops.linear import VECTORS
from modgraph.ops.op import Op
from modgraph.types import Axes, Misfit


class _Norm(Op):
    """Base of norms along all axes that the operand names, which must have fixed lengths; by default the last axis."""

    operands = VECTORS
    results = ("... D",)

    def check(self, axes: Axes) -> None:
        for letter in self.operands[0].axes.split()[1:]:
            if axes[letter].is_padded:
                reason = f'the axis "{axes[letter]}" has no fixed length, and its padding would count'
                raise Misfit(reason, "normalise along an axis with a number in the input's type")


class LayerNorm(_Norm, name="layer_norm", synonyms="ln"):
    """Subtract the mean of the last axis and divide by its standard deviation; scale and shift if `learned`."""

    torch_arguments = "normalized_shape= eps=eps elementwise_affine=learned"
    weights = (Weight("weight", "D", ONES, when="learned"), Weight("bias", "D", ZEROS, when="learned"))
    module = TorchModule("torch.nn.LayerNorm", "D", eps="eps", elementwise_affine="learned")
    gathers = True

    eps: float = setting(1e-6, min=0, below=1, doc="added to the variance")
    learned: bool = setting(True, doc="scale and shift by learned vectors")


class RMSNorm(Op, name="rms_norm"):
    """Divide the last axis by its root mean square, then scale by a learned vector."""

    torch_arguments = "normalized_shape= eps=eps"
    operands = VECTORS
    results = ("... D",)
    weights = (Weight("weight", "D", ONES),)
    module = TorchModule("torch.nn.RMSNorm", "D", eps="eps")
    keeps_zeros = True
    gathers = True

    eps: float = setting(1e-6, min=0, below=1, doc="added to the mean square")


class BatchNorm(_Norm, name="batch_norm", synonyms="bn batch_norm2d"):
    """Normalise each channel of an image by statistics of the batch in training, by running statistics afterwards.

    In a module of a pool, the batch is the messages that the module gets.
    """

    torch_arguments = "num_features= eps=eps momentum=momentum"
    example = "input x: float[4, 8, 6] y = x -> batch_norm output y"
    operands = IMAGE
    results = ("... C H W",)
    weights = (
        Weight("weight", "C", ONES),
        Weight("bias", "C", ZEROS),
        Weight("running_mean", "C", ZEROS, buffer=True),
        Weight("running_var", "C", ONES, buffer=True),
    )
    module = TorchModule("modgraph.nn.BatchNorm2d", "C", "eps", "momentum")
    masks = "..."
    over_batch = True

    eps: float = setting(1e-5, min=0, below=1, doc="added to the variance")
    momentum: float = setting(0.1, min=0, max=1, doc="share of the new batch in the running statistics")

    def indexing(self, use: Use) -> Indexing:
        """Statistics in training are over all axes but that of channels."""
        return match_patterns("C")(self, use) if use.training else read_pointwise(self, use)


class GroupNorm(_Norm, name="group_norm", synonyms="gn group_norm2d"):
    """Normalise groups of an image's channels, then scale and shift each channel."""

    torch_arguments = "num_groups=groups num_channels= eps=eps"
    example = "input x: float[4, 8, 6] y = x -> group_norm(2) output y"
    operands = IMAGE
    results = ("... C H W",)
    weights = (Weight("weight", "C", ONES), Weight("bias", "C", ZEROS))
    module = own_module("groups", "C", "eps")

    groups: int = setting(min=1, doc="number of groups")
    eps: float = setting(1e-5, min=0, below=1, doc="added to the variance")

    def check(self, axes: Axes) -> None:
        super().check(axes)
        if axes.resolve("C") % self.groups:
            raise Misfit(f"{self.groups} groups do not divide {axes.resolve('C')} channels", "choose groups that do")
        if axes.resolve("C") * axes.resolve("H") * axes.resolve("W") == self.groups:
            raise Misfit("each group has a single value, which is zero once it is normalised", "choose fewer groups")


class Dropout(Op, name="dropout", synonyms="drop"):
    """Set each value to zero with probability `rate` in training, and scale the others by 1 / (1 − rate)."""

    torch_arguments = "p=rate"
    example = "input x: float[5, 6] y = x -> dropout(0.5) output y"
    module = own_module("rate")
    keeps_zeros = True
    indexing = read_pointwise
    outside_training = "x"

    rate: float = setting(0.1, min=0, below=1, doc="probability of zero")


class DropPath(Op, name="drop_path", synonyms="stochastic_depth droppath"):
    """Set the whole value of an example to zero with probability `rate` in training, and scale the others by
    1 / (1 − rate): a residual branch that some examples skip (Huang et al., 2016).

    In a module of a pool, each message by itself.
    """

    torch_arguments = "drop_prob=rate"
    example = "input x: float[5, 6] y = x + (x -> linear(6) -> drop_path(0.5)) output y"
    module = own_module("rate", "rank")
    keeps_zeros = True
    outside_training = "x"
    indexing = read_pointwise

    rate: float = setting(0.1, min=0, below=1, doc="probability of zero")
