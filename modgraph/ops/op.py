"""The base of all ops, and the registry of their declarations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from modgraph.declare import Declaration, Registry, Role, Signature, TorchModule, own_module
from modgraph.declare.indexing import match_patterns, read_pointwise
from modgraph.ops.measures import Measure
from modgraph.ops.zeros import Bound, Bounds, ChoiceRanks, Propagated, Ranking


@dataclass(frozen=True)
class Comparison:
    """The operands of an op that are prediction and target, and the measures that apply to them. A `binary` one has a
    logit for each label of two classes, any other a logit for each class.

    The op's settings may be `ignore`, the label that does not count; `class_weights`, the weight of each class;
    `since`, the first class that counts; and `missing`, whether labels may be missing.
    """

    prediction: str
    target: str
    measures: tuple[Measure, ...]
    binary: bool = False


class Op(Declaration):
    """Base of ops. By default an op's torch module has its name, and its example applies it to vectors."""

    registry: ClassVar[Registry[Op]] = Registry("op")
    module = own_module()

    affine: ClassVar[bool] = False  # jointly affine in its operands, so that weighted sums commute with it
    gathers: ClassVar[bool] = False  # its torch module runs on stacked weights, which can be gathered by index
    outside_training: ClassVar[str] = ""  # the operand that it returns outside training
    zero_outside_training: ClassVar[bool] = False  # noise: zero outside training
    draws: ClassVar[bool] = False  # it samples a choice in training, unless its operand `forced` gives it
    narrows: ClassVar[str] = ""  # the operand of which it keeps a part; the rest becomes zero
    keeps_zeros: ClassVar[bool] = False  # elementwise, and zero at zero
    indexing: ClassVar[Any] = match_patterns()  # which entries of operands a result reads, a rule of `indexing`
    propagate: ClassVar[Any] = None  # a rule of `zeros`, which `propagate_choices` calls if there are known zeros
    taken_as_is: ClassVar[tuple[int, ...]] = ()  # operands, by place, that choices do not replace
    nondifferentiable: ClassVar[tuple[str, ...]] = ()  # operands that get no gradient, such as a choice
    takes_logits: ClassVar[str] = ""  # the operand to which it applies a softmax or a sigmoid
    neutral: ClassVar[Mapping[str, int]] = {}  # by operand, the number at which the op returns the other operand
    masks_each: ClassVar[bool] = False  # its torch module takes a mask for each operand, not only for the first
    likelihood: ClassVar[bool] = False  # a negative log-likelihood of each example, with a setting `reduce`
    compares: ClassVar[Comparison | None] = None  # the operands that a loss compares, and their measures
    over_batch: ClassVar[bool] = False  # an example's result depends on the batch, at least in training
    balances: ClassVar[bool] = False  # in training it evens out the use of modules, as a balance loss does
    tokenizes: ClassVar[bool] = False  # it makes tokens from raw data, or completes them first
    objective: ClassVar[bool] = False  # it is made to be minimised; a loss without a name gets its name
    constant_for: ClassVar[tuple[str, ...]] = ()  # for each operand, the setting that a number in its place becomes
    broadcasts: ClassVar[bool] = False  # an operand that all examples share may have a batch axis of size 1
    is_array: ClassVar[bool] = False  # one array for all examples: its operand gives only the batch size
    reads: ClassVar[tuple[Role, ...]] = (Role.GATES,)  # roles of records for which a router stands as the operand

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in vars(cls) and "example" not in vars(cls):
            cls.example = f"input x: float[5, 6] y = x -> {cls.name} output y"

    @property
    def by_chance(self) -> bool:
        """Whether the op is random in training and not in inference."""
        return bool(self.draws or self.zero_outside_training or self.outside_training or self.deterministic() != self)

    def deterministic(self) -> Op:
        """The op that replaces it in inference; it may take fewer operands."""
        return self

    def choice_bound(self, signature: Signature) -> Bound | None:
        """The bound of the result if it is a choice: zeros and ones without gradient. None for other ops."""
        return None

    def ranking(self, signature: Signature) -> Ranking | None:
        """The axis along which the result holds ranks; None for other ops."""
        return None

    def choice_ranks(self, size: int | None) -> ChoiceRanks | None:
        """The ranks below `size` at which the result is not zero; None if unknown."""
        return None

    def zero_with(self) -> tuple[int, ...]:
        """The places of operands whose zeros are zeros of the result."""
        if self.keeps_zeros:
            return (0,)
        return tuple(place for place, operand in enumerate(self.operands) if operand.name == self.narrows)

    def zero_where(self) -> tuple[int, Op] | None:
        """The place of an operand, and an op that is one where that operand makes result and gradient zero."""
        return None

    def propagate_choices(self, signature: Signature, known: Bounds) -> Propagated:
        """Propagate known zeros: an op on choices whose zeros are zeros of this op's result, and the bound of its
        result.

        `known` has the bounds of the operands. An operand without known zeros has None, and its choice is ones. Returns
        None if the result has no known zeros.
        """
        found: Propagated = None if self.propagate is None or not any(known) else self.propagate(signature, known)
        return found

    def longest(self, signature: Signature) -> dict[str, int]:
        """The largest lengths of padded axes that this op allows, by name."""
        return {}

    def grid(self, *axes: Any, **settings: Any) -> tuple[int, int] | None:
        """The rows and columns of the image whose places are its tokens, in row-major order; None for other ops.

        Overriding methods name the axes and settings that they need.
        """
        return None

    @property
    def message_rank(self) -> int | None:
        """The number of axes of one message; None if any shape fits."""
        return sum(axis != "..." for axis in self.operands[0].axes.split()) or None


def function(home: str, module: TorchModule | None, name: str, says: str, words: str = "", **traits: Any) -> type[Op]:
    """Declare an elementwise function without settings, as a class in the module with the path `home`.

    The default module is torch's with the same name. `words` are its synonyms.
    """
    facts: dict[str, Any] = {"__module__": home, "__doc__": says, "module": module or TorchModule(f"torch.nn.{name}")}
    facts |= {"indexing": read_pointwise, **traits}
    return type(name, (Op,), facts, name=name.lower(), synonyms=words)
