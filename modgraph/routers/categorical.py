"""Slots filled with modules by hard selection (Modular Networks: Kirsch et al., NeurIPS 2018)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from modgraph.declare import Record, Role, Signature, TorchModule, Use, Weight, product, setting, sizes, tokens, uniform
from modgraph.routers.on_tape import TapedPool, chosen, senders
from modgraph.routers.router import Lowering, PoolFacts, PoolTypes, Router, definition
from modgraph.routers.top_k import SELECTED, ChoiceForms, hard_forms
from modgraph.tape import Value
from modgraph.types import Axis, Misfit, TensorType, once_each

SIDE_BY_SIDE = ChoiceForms(  # each slot is a sender of its own
    message_passing="modgraph.nn.message_passing.SlotsMessagePassing",
    grouped="modgraph.nn.SlotsGrouped",
    per_module="modgraph.nn.SlotsPerModule",
    gathered="modgraph.nn.SlotsGathered",
    masked="modgraph.nn.SlotsMasked",
)


def _records(scores: Role) -> tuple[Record, ...]:
    return (
        Record("gates", "... N M", Role.GATES),
        Record("scores", "... N slots M", scores),
        Record("selected", "... N slots M", Role.SLOTS),
    )


class Slots(Router):
    """Fill each of some slots with one module. Routers below it say with which.

    What they record has a row for each slot; `gates` counts how often each module is taken.
    """

    operands = (tokens("tokens"),)
    records: ClassVar[tuple[Record, ...]] = _records(Role.SCORES)

    slots: int = setting(1, min=1, doc="modules for each token")
    combine: str = setting(
        "sum", choices=("sum", "concat"), doc="add the results of the slots, or put them side by side"
    )
    dedupe: bool = setting(False, doc="a module that fills several slots counts once in the sum")

    def masked(self, signature: Signature) -> tuple[Axis, ...]:
        return (*(signature.axes.lead or ()), signature.axes["N"])

    def bind_pool(self, pool: PoolTypes, tokens: TensorType, *others: TensorType) -> Signature:
        """A message of any rank is routed as one vector; so is its result."""
        self.fits(pool.message, pool.size)
        result = self._combined(pool.result)
        outer = self.outer(pool, tokens)
        flat = tokens.with_shape((*(outer or (1,)), _width(pool.message)))
        facts: dict[str, Any] = {"message_rank": len(pool.message.shape), **self.controlled(pool.message)}
        signature = self.bind(flat, *others, M=pool.axis, V=Axis(_width(result)), **facts)
        value, *records = signature.results if outer else self._for_one(signature.results)
        value = value.with_shape(once_each((*value.shape[:-1], *result.shape)))
        return replace(signature, operands=(tokens, *others), results=(value, *records))

    def _combined(self, result: TensorType) -> TensorType:
        """What the results of all slots make together. Raises `Misfit`."""
        if self.combine == "sum":
            return result
        if self.dedupe:
            reason = "dedupe goes with a sum: side by side, each slot has a place of its own"
            raise Misfit(reason, "drop one of the two")
        if not result.shape:
            raise Misfit("numbers cannot be put side by side", 'use combine="sum"')
        first, *rest = result.shape
        return result if first.size is None else result.with_shape((self.slots * first.size, *rest))

    def fits(self, message: TensorType, modules: int) -> None:
        """Raise `Misfit` where this router cannot choose among such modules."""

    def controlled(self, message: TensorType) -> dict[str, Any]:
        """Axes of this router's weights, and what else its torch module takes."""
        return {}

    def on_tape(self, use: Use, pool: TapedPool, form: str, tokens: Value, *others: Value) -> tuple[Value, ...]:
        S, M, K, tape, tokens = senders(use), pool.size, self.slots, use.tape, use.cleared(tokens)
        scores = tape.cleared(self.scores_on_tape(use, tokens, S * K * M), S if use.mask() else 0)
        selected, gates = tape.drawn(S * K * M), tape.drawn(S * M)
        if self.combine == "sum":
            return chosen(form, use, pool, tokens, gates, S, self.reached(M), K), gates, scores, selected
        each = tape.make(K * tokens.count, tokens)  # each slot is a sender of its own
        return chosen(form, use, pool, each, selected, S * K, 1, 1), gates, scores, selected

    def scores_on_tape(self, use: Use, tokens: Value, count: float) -> Value:
        """So many scores, which do not depend on the input unless a router says so."""
        return use.tape.drawn(count)

    def reached(self, modules: int) -> float:
        """How many modules a sender's slots hold, if all are equally probable."""
        return modules * (1 - (1 - 1 / modules) ** self.slots)

    def active_modules(self, size: int) -> int:
        return min(self.slots, size)

    @property
    def _forms(self) -> ChoiceForms:
        return SIDE_BY_SIDE if self.combine == "concat" else SELECTED

    @property
    def reference_form(self) -> Lowering:
        return definition(self._forms.message_passing)

    def lowerings(self, pool: PoolFacts) -> tuple[Lowering, ...]:
        return hard_forms(pool, self._forms)


def _width(type_: TensorType) -> int:
    """How many numbers a message or a result has. Raises `Misfit` if that is not fixed."""
    if type_.padded:
        reason = f"a router with slots needs messages and results of a fixed size, not {type_}"
        raise Misfit(reason, "give the axis a number in the input's type")
    return product(type_.shape)


class Categorical(Slots):
    """Draw a module for each slot from a distribution over the pool; in inference take the most probable.

    log p = log softmax(W x + b) of each slot, x the whole message as one vector; of equal ones the first is taken.
    `controller="conv"` takes for x the mean over the image of relu(convolution). The choice passes no gradient: train
    with the algorithm `em` or `reinforce`. `scores` are log-probabilities.
    """

    name = "categorical"
    synonyms = ("gumbel", "sample", "reinforce")
    example = "input x: float[5, 6] pool p[3] = linear(4) router r = categorical(slots=2) y = x -> p by r output y"
    weights = (
        Weight("weight", "slots M features", uniform("features")),
        Weight("bias", "slots M"),
        Weight("conv.weight", "channels C kernel kernel", uniform("C kernel kernel"), when="convolves"),
        Weight("conv.bias", "channels", uniform("C kernel kernel"), when="convolves"),
    )
    module = TorchModule(
        "modgraph.nn.Categorical", "M", "features", "slots", "message_rank", dedupe="dedupe", image="image"
    )
    draws = True
    records = _records(Role.LOG_PROBABILITIES)

    controller: str = setting("linear", choices=("linear", "conv"), doc="what makes logits of a message")
    channels: int = setting(16, min=1, doc="of the controller's convolution")
    kernel: int = setting(3, min=1, doc="width of the window of the controller's convolution")

    @property
    def convolves(self) -> bool:
        return self.controller == "conv"

    def fits(self, message: TensorType, modules: int) -> None:
        if self.convolves and len(message.shape) != 3:
            raise Misfit(
                f'controller="conv" looks at images [channels, height, width], and these modules take {message}',
                'use controller="linear"',
            )

    def controlled(self, message: TensorType) -> dict[str, Any]:
        if not self.convolves:
            return {"features": _width(message), "image": None, "C": 0, "H": 0, "W": 0}
        C, H, W = sizes(message.shape)
        image = (C, self.channels, self.kernel)
        return {"features": self.channels, "image": image, "C": C, "H": H, "W": W}

    def scores_on_tape(self, use: Use, tokens: Value, count: float) -> Value:
        tape, S, (weight, bias, *convolution) = use.tape, senders(use), use.weights.values()
        if convolution:
            places = S * self.channels * use.axis("H") * use.axis("W")
            seen = tape.function(tape.product(places, tokens, *convolution), "result")
            tokens = tape.make(S * self.channels, seen, passes=True)
        return tape.function(tape.product(count, tokens, weight, bias), "result")

    def macs(self, N: int, M: int, features: int, C: int, H: int, W: int) -> int:
        convolution = self.channels * self.kernel**2 * C * H * W
        return N * (convolution + features * M * self.slots)


class Fixed(Slots):
    """Fill slot k with module k, whatever the input: the baseline without selection."""

    name = "fixed"
    synonyms = ("none", "identity")
    example = "input x: float[5, 6] pool p[3] = linear(4) router r = fixed(slots=2) y = x -> p by r output y"
    module = TorchModule("modgraph.nn.Fixed", "M", "slots", "message_rank", "dedupe")

    def reached(self, modules: int) -> float:
        return self.slots

    def fits(self, message: TensorType, modules: int) -> None:
        if self.slots > modules:
            raise Misfit(
                f"it fills slots={self.slots} from a pool of {modules}", "lower slots, or raise the pool's size"
            )
