"""Declares an op or a router once, without torch.

A declaration is a frozen dataclass whose fields are its settings. Class attributes state its operands, results and
weights by axis patterns, and the torch module that computes it. Signatures, checks, shapes, parameter counts, weight
names and reference pages are derived from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, dataclass_transform

from modgraph.declare.registry import Registered
from modgraph.declare.setting import position_of, setting
from modgraph.declare.signature import Signature, Weight
from modgraph.declare.words import format_count, format_value
from modgraph.frozen import FrozenData
from modgraph.types import Axes, Axis, Misfit, TensorType

DTYPE_HELP = {
    "class": "compare a label in a loss, after the logits: cross_entropy(logits, label); or: label -> one_hot",
    "edge": "read values at the ends of edges: (x, link) -> at_source; send along them: x by w over link",
    "token": "turn tokens into vectors: -> embedding(width), or -> one_hot",
}
IDS = ("token", "class")


@dataclass(frozen=True)
class Operand:
    """A value that a declaration takes; `help` explains its axes where they do not fit.

    The dtype `id` fits tokens and classes, `any` floats too. `optional` operands come last and may be left out from the
    end.
    """

    name: str
    axes: str
    dtype: str = "float"
    help: str = ""
    optional: bool = False

    def takes(self, dtype: str) -> bool:
        """Whether a value of this dtype fits."""
        fitting = {"id": IDS, "any": ("float", *IDS)}
        return dtype in fitting.get(self.dtype, (self.dtype,))


def tokens(name: str) -> Operand:
    """Declare an operand of N tokens of width D."""
    advice = "give tokens the axes number, width; turn an image into tokens with: -> tokens"
    return Operand(name, "... N D", help=advice)


class TorchModule:
    """The torch module of a declaration: an import path and the constructor's arguments, by setting or axis name."""

    def __init__(self, path: str, *positional: str, **named: str) -> None:
        self.path = path
        self.positional = positional
        self.named = named

    def __get__(self, declaration: Declaration | None, kind: type[Declaration]) -> TorchModule:
        """Return the module; without a path, the class of `modgraph.nn` with the declaration's name."""
        return self if self.path else TorchModule(f"modgraph.nn.{kind.__name__}", *self.positional, **self.named)


def own_module(*positional: str, **named: str) -> TorchModule:
    """Refer to the class of `modgraph.nn` with the declaration's name."""
    return TorchModule("", *positional, **named)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(setting,))
class _Declared(FrozenData):
    """Makes every class below it a frozen dataclass."""


class Declaration(_Declared, Registered):
    """Base of ops and routers."""

    synonyms: ClassVar[tuple[str, ...]] = ()  # synonyms in the field, for suggestions
    torch_arguments: ClassVar[str] = ""  # arguments of torch's layer in order, as in "p=rate"; "in=" if inferred here
    example: ClassVar[str]  # the body of a small model with one use
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", "..."),)
    variadic: ClassVar[bool] = False
    takes_names: ClassVar[bool] = False  # any name is an argument; the setting `names` holds each name and its value
    results: ClassVar[tuple[str, ...]] = ("...",)
    weights: ClassVar[tuple[Weight, ...]] = ()
    along: ClassVar[bool] = False  # it works along the axis of its first operand that the setting `axis` names
    takes_edges: ClassVar[bool] = False  # some of its operands may be edges
    takes_ids: ClassVar[bool] = False  # it only moves numbers, so that its operands may be ids
    one_kind: ClassVar[bool] = False  # its operands are all per example, or all per batch
    masks: ClassVar[str] = ""  # a pattern of the axes whose mask it needs; a number is a place in the first operand
    module: ClassVar[TorchModule]

    def __init_subclass__(cls, synonyms: str = "", **options: Any) -> None:
        cls.synonyms = tuple(synonyms.split()) or cls.synonyms
        super().__init_subclass__(**options)

    def all_weights(self) -> tuple[Weight, ...]:
        """Return the weights under these settings."""
        if not self.weights:
            return ()
        return tuple([weight for weight in self.weights if all([getattr(self, each) for each in weight.when.split()])])

    def slots_of(self, count: int) -> tuple[str, ...]:
        """Return the slots for a number of operands: their names, or numbers for a variadic declaration."""
        if self.variadic:
            return tuple(str(index) for index in range(max(1, count)))
        return tuple(operand.name for operand in self.operands[: max(count, _count_required(self.operands))])

    def bind(self, *found: TensorType, **known: Any) -> Signature:
        """Check operand types and infer the results; `known` binds some axes first. Raises `Misfit`."""
        edges = next((at for at, type_ in enumerate(found) if type_.ends), None)
        if edges is not None and not self.takes_edges:
            raise Misfit(f"it takes no edges, and this is {found[edges]}", DTYPE_HELP["edge"], edges)
        axes = Axes(self)
        axes.bound.update(known)
        return Signature(self, found, axes, self.resolve(axes, found))

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Bind the axes of the operands and infer the types of the results. Raises `Misfit`."""
        operands = self.match_operands(found)
        if len(found) != len(operands):
            names = ", ".join(operand.name for operand in self.operands)
            fewest = _count_required(self.operands)
            some = f"{fewest} to " if fewest < len(self.operands) else ""
            raise Misfit(f"it takes {some}{format_count(len(self.operands), 'operand')} ({names}), not {len(found)}")
        for at, (operand, type_) in enumerate(zip(operands, found, strict=True)):
            what = "its operand" if len(operands) == 1 else f'operand "{operand.name}"'
            if not operand.takes(type_.dtype) and not (self.takes_ids and type_.dtype in IDS):
                wanted = {"id": "ids (token or class)"}.get(operand.dtype, operand.dtype)
                raise Misfit(f"{what} must be {wanted}, not {type_}", DTYPE_HELP.get(type_.dtype, ""), at)
            axes.match(operand.axes, type_, at, what, operand.help)
            for name, each in (("size", type_.size), ("classes", type_.classes)):
                if each is not None:
                    axes.bound.setdefault(name, each)
        axes.bound["rank"] = len(found[0].shape) if found else 0
        if self.along:
            axes.bound["position"] = position_of(vars(self)["axis"], found[0], self.name)
        self.check(axes)
        if self.one_kind:
            check_one_kind(found)
        return self.infer(axes, found)

    def match_operands(self, found: tuple[TensorType, ...]) -> tuple[Operand, ...]:
        """Return the declared operand for each value."""
        if self.variadic:
            return self.operands[:1] * len(found)
        return self.operands[: max(len(found), _count_required(self.operands))]

    def check(self, axes: Axes) -> None:
        """Raise `Misfit` where settings and axes do not fit each other."""

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Infer the types of the results, by default from the `results` patterns; per batch if all operands are."""
        per: Any = "batch" if {type_.per for type_ in found} == {"batch"} else "example"
        return tuple(TensorType("float", axes.shape(pattern), per=per) for pattern in self.results)

    def macs(self, *axes: Any, **settings: Any) -> int:
        """Count multiply-accumulates for one message; for a router, for one decision over all tokens and modules,
        without messages. Overriding methods name the axes and settings that they need."""
        return 0

    @property
    def may_mask(self) -> bool:
        """Whether the declaration needs the mask of any axis."""
        return bool(self.masks) or type(self).list_masked_axes is not Declaration.list_masked_axes

    def list_masked_axes(self, signature: Signature) -> tuple[Axis, ...]:
        """List the axes whose mask the declaration needs where they are padded."""
        lead = (signature.axes.lead or ()) if "..." in self.masks else ()
        named = [signature.axes[name] for name in self.masks.replace("...", "").split()]
        return (*lead, *(signature.operands[0].shape[each] if isinstance(each, int) else each for each in named))

    def __str__(self) -> str:
        given = [f"{name}={format_value(value)}" for name, value in self.values().items()]
        return f"{self.name}({', '.join(given)})" if given else self.name


def check_one_kind(found: tuple[TensorType, ...]) -> None:
    """Raise `Misfit` where some values are per example and others per batch."""
    if len({type_.per for type_ in found}) > 1:
        raise Misfit("operands must all be of each example, or all over the batch")


def join_ids(result: TensorType, found: tuple[TensorType, ...]) -> TensorType:
    """Return the type of a value whose numbers come from several: of ids if all are. Raises `Misfit` for a mixture."""
    sizes = [type_.size for type_ in found if type_.size is not None]
    if not sizes:
        return result
    if len(sizes) < len(found):
        kinds = " and ".join(dict.fromkeys(map(str, found)))
        raise Misfit(f"its operands must all be floats, or all ids, not {kinds}", DTYPE_HELP["token"])
    return replace(result, dtype="token", size=max(sizes), of="")


@cache
def _count_required(operands: tuple[Operand, ...]) -> int:
    """Count the operands that are not optional."""
    return sum(not operand.optional for operand in operands)
