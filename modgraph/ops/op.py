"""The base of all ops, and the registry that their declarations fill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from modgraph.declare import Declaration, Registry, Role, Signature
from modgraph.ops.comparison import Comparison
from modgraph.ops.zeros import Bound, Bounds, ChosenRanks, Ranking
from modgraph.types import Misfit, TensorType


def check_one_kind(found: Sequence[TensorType]) -> None:
    """Raises `Misfit` where some values are for each example and others over the batch."""
    if len({type_.per for type_ in found}) > 1:
        raise Misfit("it takes values of each example or values over the batch, not both")


class Op(Declaration):
    """One operation on tensors.

    `affine` says that it is affine in its operands together, which lets a router move weighted sums across it.
    `gathers` says that its torch module offers `gathered`: many modules' weights as one, taken by index.
    `grouped` says that many modules' weights are one on rows sorted by module, as those of one that `gathers` are.
    `outside_training` is the operand, by its name, that it is outside training, if it is one of them.
    `zero_outside_training` says that it is noise: what is added to another value in training.
    `draws` says that it chooses by chance in training, unless an operand `told` says what.
    `narrows` is the operand, by its name, of which it leaves a part, or all, as it is.
    `keeps_zeros` says that it is a function of each number, and zero at zero.
    `nondifferentiable` names the operands that no gradient of its result reaches, such as the choice of a route.
    `takes_logits` names the operand to which it applies a softmax.
    `taken_as_is` has the operands, by place, that `propagate_choices` does not replace by choices.
    `unchanged_by_zero` are the operands, by name, that as zeros leave the other one as it is.
    `masks_each` says that its torch module takes a mask for each operand, where others take that of the first.
    `likelihood` says that it is a negative log-likelihood of each example, with a setting `reduce` of mean and sum.
    `compares` says which operands it compares, of a loss that does, and what is measured of them.
    `over_batch` says that the result for an example depends on other examples of the batch, at least in training.
    `constant_for` says for each operand which setting a number in its place is, where it may be one: `maximum(x, 0)`.
    `tokenizes` says that it makes tokens of raw data, or completes such tokens before anything reads them.
    `objective` says that it is made to be minimised: a loss statement without a name is called after it.
    """

    registry: ClassVar[Registry[Op]] = Registry("op")

    affine: ClassVar[bool] = False
    gathers: ClassVar[bool] = False
    grouped: ClassVar[bool] = False
    outside_training: ClassVar[str] = ""
    zero_outside_training: ClassVar[bool] = False
    draws: ClassVar[bool] = False
    narrows: ClassVar[str] = ""
    keeps_zeros: ClassVar[bool] = False
    taken_as_is: ClassVar[tuple[int, ...]] = ()
    nondifferentiable: ClassVar[tuple[str, ...]] = ()
    takes_logits: ClassVar[str] = ""
    unchanged_by_zero: ClassVar[tuple[str, ...]] = ()
    masks_each: ClassVar[bool] = False
    likelihood: ClassVar[bool] = False
    compares: ClassVar[Comparison | None] = None
    over_batch: ClassVar[bool] = False
    tokenizes: ClassVar[bool] = False
    objective: ClassVar[bool] = False
    constant_for: ClassVar[tuple[str, ...]] = ()
    broadcasts: ClassVar[bool] = False  # an operand that is the same for all examples may stand for one alone
    is_array: ClassVar[bool] = False  # one for all examples: its operand only tells how many there are
    reads: ClassVar[tuple[Role, ...]] = (Role.GATES,)  # of a router that stands for its operand: the first it records

    def macs(self, *axes: Any, **settings: Any) -> int:
        """Multiply-accumulates for one message; overriding methods name the axes and settings they need."""
        return 0

    def without_chance(self) -> Op:
        """What takes its place in inference; it may take fewer of the operands."""
        return self

    def chosen(self, signature: Signature) -> Bound | None:
        """The axis and the number of a choice, a value of zeros and ones without gradient; None for other ops."""
        return None

    def ranked(self, signature: Signature) -> Ranking | None:
        """The axis along which the result holds ranks, if it does."""
        return None

    def chosen_ranks(self, size: int | None) -> ChosenRanks | None:
        """The ranks below `size`, if that is known, at which the result is not zero; None where it may be any."""
        return None

    def zero_with(self) -> tuple[int, ...]:
        """The operands, by place, whose zeros the result keeps, number by number."""
        return (0,) if self.keeps_zeros else ()

    def zero_where(self) -> tuple[int, Op] | None:
        """An operand, by place, and the op that gives one for those of its numbers at which the result and its gradient
        are zero."""
        return None

    def propagate_choices(self, signature: Signature, known: Bounds) -> tuple[Op, Bound] | None:
        """An op to apply to choices, ones and zeros, in place of the operands, and the bound of its result: wherever
        that is zero, the op's own result must be zero. `known` has the bounds of the operands; one without known zeros
        has None, and ones in its place. None: the result has no known zeros."""
        return None

    def longest(self, signature: Signature) -> dict[str, int]:
        """How long axes of any length may be here at most, by name."""
        return {}

    def grid(self, *axes: Any, **settings: Any) -> tuple[int, int] | None:
        """Rows and columns of the image whose places its tokens are, row by row, if it makes tokens of an image.

        Overriding methods name the axes and settings they need.
        """
        return None

    @property
    def message_rank(self) -> int | None:
        """How many trailing axes make one message, or None where any shape will do."""
        axes = [axis for axis in self.operands[0].axes.split() if axis != "..."]
        return len(axes) or None
