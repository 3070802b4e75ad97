"""Torch modules with the author's structure: a class for each definition, an instance for each call."""

from __future__ import annotations

import copyreg
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from torch import Tensor, nn

from modgraph.backends.torch.construct import Namespace
from modgraph.backends.torch.plan import CallSteps, plan_for
from modgraph.backends.torch.run import Context, Plan
from modgraph.ir import Call


class _Pickled(type):
    """The type of classes that `class_of` makes. A pickle holds its arguments, since they have no import path."""

    __definition__: tuple[str, int]


class Instance(Namespace, metaclass=_Pickled):
    """One call of a block, a module, a router text, or a round of a `repeat`.

    It holds the modules whose weights lie below its path. Calls with the same weights are one instance.
    """

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call = call
        self.steps: CallSteps | None = None
        self._plans: dict[bool, Plan] = {}

    def forward(self, *operands: Tensor, plan: Plan | None = None, context: Context | None = None) -> Any:
        """Run a plan, by default the one for the results of the author's call.

        The operands are the plan's arguments; lengths come last, and may be omitted if examples are full.
        """
        found = (self.plan if plan is None else plan).run(operands, context)
        return found[0] if len(found) == 1 else tuple(found)

    @property
    def plan(self) -> Plan:
        """The plan for the results of the author's call."""
        assert self.steps is not None, "an instance is called before it is compiled"
        if self.training not in self._plans:
            self._plans[self.training] = plan_for(self.steps.steps, self.steps.values, self.training)
        return self._plans[self.training]


def class_of(definition: str, number: int) -> type[Instance]:
    """Make a class for one definition.

    Its `forward` has a code object of its own, because `torch.compile` caches and counts compilations by code object.
    """
    forward = Instance.forward
    name = (
        "".join(part[:1].upper() + part[1:] for part in definition.split("_")) or definition
    )  # for example `TaskDecoder`
    code = forward.__code__.replace(co_name=f"{definition}_{number}", co_qualname=f"{name}.forward")
    own = FunctionType(code, forward.__globals__, "forward", forward.__defaults__)
    own.__kwdefaults__, own.__doc__ = forward.__kwdefaults__, forward.__doc__
    own.__annotations__ = forward.__annotations__
    return type(name, (Instance,), {"forward": own, "__module__": __name__, "__definition__": (definition, number)})


copyreg.pickle(_Pickled, lambda kind: "Instance" if kind is Instance else (class_of, kind.__definition__))


def units(model: nn.Module) -> Iterator[Instance]:
    """List the instances of rounds and blocks that no other one contains, without those in pools. Each is compiled or
    divided separately."""
    for child in model.children():
        if isinstance(child, Instance) and child.call.kind in ("round", "block"):
            yield child
        elif type(child) is Namespace or isinstance(child, Instance):
            yield from units(child)
