"""The base of all ops, and the registry that their declarations fill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from modgraph.declare import Declaration, Registry, Role, Signature, TorchModule, own_module
from modgraph.ops.zeros import Bound, Bounds, ChoiceRanks, Propagated, Ranking


@dataclass(frozen=True)
class Measure:
    """Something measured of a prediction and a target, by the name that its metric has."""

    name: str
    larger_is_better: bool = False


ACCURACY = Measure("accuracy", larger_is_better=True)  # of logits over classes, and a label
PERPLEXITY = Measure("perplexity")  # of logits and several labels an example, by an op that is their cross-entropy
SQUARED_ERROR = Measure("mse")  # of numbers


@dataclass(frozen=True)
class Comparison:
    """Which operands of an op are the prediction and the target, and what is measured of them.

    An op may have the settings `ignore`, the label that does not count, `class_weights`, how much each class does,
    `since`, the first that has a share, and `missing`, whether a label may be missing.
    """

    prediction: str
    target: str
    measures: tuple[Measure, ...]


class Op(Declaration):
    """One operation on tensors. Its torch module is the one of its name, its example applies it to vectors, unless it
    says otherwise."""

    registry: ClassVar[Registry[Op]] = Registry("op")
    module = own_module()

    affine: ClassVar[bool] = False  # in its operands together, so that a router may move weighted sums across it
    gathers: ClassVar[bool] = False  # its torch module offers `gathered`: many modules' weights as one, taken by index
    grouped: ClassVar[bool] = False  # many modules' weights are one on rows sorted by module, as where it `gathers`
    outside_training: ClassVar[str] = ""  # the operand, by its name, that it is outside training
    zero_outside_training: ClassVar[bool] = False  # it is noise: what is added to another value in training
    draws: ClassVar[bool] = False  # it chooses by chance in training, unless an operand `forced` does
    narrows: ClassVar[str] = ""  # the operand, by its name, of which it leaves a part as it is; the rest is zero
    keeps_zeros: ClassVar[bool] = False  # it is a function of each number, and zero at zero
    propagate: ClassVar[Any] = None  # a rule of `zeros` for `propagate_choices`, which it is asked for with known zeros
    taken_as_is: ClassVar[tuple[int, ...]] = ()  # operands, by place, that are not replaced by choices
    nondifferentiable: ClassVar[tuple[str, ...]] = ()  # operands that no gradient reaches, such as a choice
    takes_logits: ClassVar[str] = ""  # the operand to which it applies a softmax
    neutral: ClassVar[Mapping[str, int]] = {}  # by operand, the number that leaves the other one as it is
    masks_each: ClassVar[bool] = False  # its torch module takes a mask for each operand, others one for the first
    likelihood: ClassVar[bool] = False  # a negative log-likelihood of each example, with a setting `reduce`
    compares: ClassVar[Comparison | None] = None  # which operands a loss compares, and what is measured of them
    over_batch: ClassVar[bool] = False  # an example's result depends on others of the batch, at least in training
    tokenizes: ClassVar[bool] = False  # it makes tokens of raw data, or completes them before anything reads them
    objective: ClassVar[bool] = False  # it is made to be minimised: a loss without a name is called after it
    constant_for: ClassVar[tuple[str, ...]] = ()  # for each operand the setting that a number in its place is
    broadcasts: ClassVar[bool] = False  # an operand that is the same for all examples may stand for one alone
    is_array: ClassVar[bool] = False  # one for all examples: its operand only tells how many there are
    reads: ClassVar[tuple[Role, ...]] = (Role.GATES,)  # of a router as its operand: the first of these that it records

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in vars(cls) and "example" not in vars(cls):
            cls.example = f"input x: float[5, 6] y = x -> {cls.name} output y"

    @property
    def by_chance(self) -> bool:
        """Whether training computes something by chance that inference does not."""
        return bool(self.draws or self.zero_outside_training or self.outside_training or self.deterministic() != self)

    def deterministic(self) -> Op:
        """What takes its place in inference; it may take fewer of the operands."""
        return self

    def choice_bound(self, signature: Signature) -> Bound | None:
        """The axis and the number of a choice, a value of zeros and ones without gradient; None for other ops."""
        return None

    def ranking(self, signature: Signature) -> Ranking | None:
        """The axis along which the result holds ranks, if it does."""
        return None

    def choice_ranks(self, size: int | None) -> ChoiceRanks | None:
        """The ranks below `size`, if that is known, at which the result is not zero; None where it may be any."""
        return None

    def zero_with(self) -> tuple[int, ...]:
        """The operands, by place, whose zeros the result keeps, number by number."""
        if self.keeps_zeros:
            return (0,)
        return tuple(place for place, operand in enumerate(self.operands) if operand.name == self.narrows)

    def zero_where(self) -> tuple[int, Op] | None:
        """An operand, by place, and the op that gives one for those of its numbers at which the result and its gradient
        are zero."""
        return None

    def propagate_choices(self, signature: Signature, known: Bounds) -> Propagated:
        """An op to apply to choices, ones and zeros, in place of the operands, and the bound of its result: wherever
        that is zero, the op's own result must be zero. `known` has the bounds of the operands; one without known zeros
        has None, and ones in its place. None: the result has no known zeros."""
        found: Propagated = None if self.propagate is None or not any(known) else self.propagate(signature, known)
        return found

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
        return sum(axis != "..." for axis in self.operands[0].axes.split()) or None


def function(home: str, module: TorchModule | None, name: str, says: str, words: str = "", **traits: Any) -> type[Op]:
    """Declare a function of each number that has no settings, as a class of this name in the file of the path `home`.

    Without a module it is the one of torch with its name. `words` are its synonyms.
    """
    facts = {"__module__": home, "__doc__": says, "module": module or TorchModule(f"torch.nn.{name}"), **traits}
    return type(name, (Op,), facts, name=name.lower(), synonyms=words)
