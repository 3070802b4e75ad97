"""Routers that are defined in the language."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from modgraph.declare import Operand, Record, Registry, Role, Signature, TorchModule, Use, setting
from modgraph.routers.on_tape import TapedPool
from modgraph.routers.router import Lowering, PoolTypes, RecordsOf, Router
from modgraph.tape import Value
from modgraph.types import Axes, Axis, Misfit, TensorType

ROLES = {role.name.lower(): role for role in Role}


class Defined(Router):
    """What a `router … for pool { … }` decides: the ops and routes of its body compute it, and a route by it shows it.

    Operands are what is routed, the value, what is recorded, and what was recorded in earlier rounds.
    """

    name = "defined"
    registry: ClassVar[Registry[Router]] = Registry("primitive")  # no spec names it
    operands = (Operand("tokens", "..."), Operand("value", "..."))
    module = TorchModule("modgraph.nn.Defined")
    reference = "modgraph.nn.Defined"
    senders = False
    masks_each = True
    computes = False

    records: ClassVar[Any] = RecordsOf(lambda router: tuple(_records(router.recorded)))

    definition: str = setting(doc="what the definition is called")
    given: tuple[str, ...] = setting((), doc="its parameters that are not at their default")
    defaults: tuple[str, ...] = setting((), doc="those that are")
    recorded: tuple[str, ...] = setting((), doc="the name and the role of each record")
    rounds_before: int = setting(0, min=0, doc="how many rounds it recorded before the last")
    k: int = setting(0, min=0, doc="how many modules a sender reaches at most; 0: any number")
    one_for_each: str = setting("sender", choices=("sender", "module", "pair"))  # type: ignore[misc,assignment]
    chooses_along: str | None = setting(None, choices=("modules", "senders"))  # type: ignore[misc,assignment]
    balanced: bool = setting(False)  # type: ignore[misc]
    draws: bool = setting(False)  # type: ignore[misc]

    @property
    def as_written(self) -> str:
        return f"{self.definition}({', '.join(self.given)})" if self.given else self.definition

    def slots_of(self, count: int) -> tuple[str, ...]:
        before = (f"{name}.{at}" for at in range(1, self.rounds_before + 1) for name in self.record_names)
        return ("tokens", "value", *self.record_names, *before)

    def bind_pool(self, pool: PoolTypes, tokens: TensorType, *others: TensorType) -> Signature:
        names = self.record_names
        unknown = [role for role in self.recorded[1::2] if role not in ROLES]
        if unknown or len(self.recorded) % 2 or len(set(names)) < len(names):
            raise Misfit(f"its records are names with roles, not {', '.join(self.recorded)}")
        if len(others) != 1 + len(names) * (1 + self.rounds_before):
            raise Misfit(f"it takes {', '.join(self.slots_of(0))}")
        if any(each.dtype != "float" or each.per == "batch" for each in others):
            raise Misfit("what it shows is float, of each example")
        axes = Axes(self)
        axes.lead, axes.bound["N"] = (), 0
        return Signature(self, (tokens, *others), axes, others[: 1 + len(names)])

    def masked(self, signature: Signature) -> tuple[Axis, ...]:
        return tuple(axis for type_ in signature.operands[1:] for axis in type_.shape)

    def on_tape(self, use: Use, pool: TapedPool, form: str, tokens: Value, *others: Value) -> tuple[Value, ...]:
        return tuple(use.cleared(each, at) for at, each in enumerate(others[: len(use.results)], start=1))

    def deterministic(self) -> Router:
        return replace(self, rounds_before=0)

    def active_modules(self, size: int) -> int:
        return min(self.k or size, size)

    def active_messages(self, signature: Signature, size: int) -> int:
        return 0

    def macs(self, *axes: Any, **settings: Any) -> int:
        return 0

    @property
    def reference_form(self) -> Lowering:
        return Lowering("as_defined", self.reference, "its body's ops and routes compute it")


def _records(recorded: tuple[str, ...]) -> Iterator[Record]:
    for name, role in zip(recorded[::2], recorded[1::2], strict=False):
        yield Record(name, "...", ROLES.get(role, Role.OTHER))  # `bind_pool` refuses what is no role
