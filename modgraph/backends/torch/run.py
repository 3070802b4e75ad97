"""Runs plans: what computes each node, on values that have numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from modgraph.backends.torch.route import CompiledRoute
from modgraph.ir import Result
from modgraph.nn import valid_along
from modgraph.nn.labels import both

Values = list[Any]  # tensors, and None for lengths that are not given


@dataclass(eq=False)
class Context:
    """What the bodies of one call of a model have in common.

    `told` has forced choices of draws by name. `active` says which examples [B] reach a step of a scan. `masks` are
    kept by the first that needs them.
    """

    told: Mapping[str, Tensor] = field(default_factory=dict)
    active: Tensor | None = None
    masks: dict[tuple[str, int], Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Mask:
    """The padding of one operand [B, ...]: its axes, counted from 1, and the numbers of the values that tell their
    lengths; masks of one name and as many axes are the same."""

    name: str
    lengths: tuple[tuple[int, int], ...]

    def of(self, x: Tensor, values: Values, context: Context) -> Tensor | None:
        """Which places are real, as a mask that broadcasts against x; None where all are."""
        name = (self.name, x.dim())
        if name not in context.masks:
            found = valid_along(x, {axis: values[at] for axis, at in self.lengths})
            if found is None:
                return None
            context.masks[name] = found
        return context.masks[name]


@dataclass(frozen=True)
class Takes:
    """What an action takes beside its operands: `masks` of these, `each` or that of the first alone; the `length` of a
    scan; what a draw is `told`, or those within a scan; which examples
    are `active`."""

    masks: tuple[Mask, ...] = ()
    each: bool = False
    length: int | None = None
    told: str = ""
    told_inside: tuple[str, ...] = ()
    active: bool = False

    def given(self, operands: Sequence[Tensor], values: Values, context: Context) -> dict[str, Any]:
        """The arguments by name."""
        return self._masks(operands, values, context) | self._told(context.told)

    def _masks(self, operands: Sequence[Tensor], values: Values, context: Context) -> dict[str, Any]:
        if self.length is not None:
            return {"length": values[self.length]}
        active = context.active if self.active else None
        if not self.masks and active is None:
            return {}
        masks = tuple(
            mask.of(x, values, context) if mask.lengths else None
            for mask, x in zip(self.masks or (Mask("", ()),) * len(operands), operands, strict=False)
        )
        if active is not None:
            masks = tuple(both(mask, _expand_mask(active, x)) for mask, x in zip(masks, operands, strict=True))
        return {"real": masks if self.each else masks[0]}

    def _told(self, told: Mapping[str, Tensor]) -> dict[str, Any]:
        if not told:
            return {}
        if self.told in told:
            return {"told": told[self.told]}
        inside = {name: told[name] for name in self.told_inside if name in told}
        return {"told": inside} if inside else {}


def _expand_mask(active: Tensor, x: Tensor) -> Tensor:
    """A mask of examples [B] that broadcasts against x [B, ...]."""
    return active.reshape(-1, *[1] * (x.dim() - 1))


@dataclass(frozen=True, eq=False)
class Action:
    """Computes a node from the values of these numbers; `results` are those of its results that others read. A call
    runs its `inner` plan."""

    node: str
    compute: Callable[..., Any]
    operands: tuple[int, ...]
    results: tuple[int, ...]
    takes: Takes | None = None
    inner: Plan | None = None

    def run(self, values: Values, context: Context) -> Any:
        operands = [values[at] for at in self.operands]
        if self.inner is not None:
            return self.compute(*operands, plan=self.inner, context=context)
        if self.takes is None:
            return self.compute(*operands)
        return self.compute(*operands, **self.takes.given(operands, values, context))

    def begun(self) -> Action:
        """The same, to be run many times with the same weights."""
        if self.inner is not None:
            return replace(self, inner=self.inner.begun())
        return replace(self, compute=self.compute.begun()) if isinstance(self.compute, CompiledRoute) else self


@dataclass(frozen=True, eq=False)
class Plan:
    """What computes some results of a body from its arguments. The arguments are the first values; each action appends
    those of its results that are read."""

    arguments: tuple[Result, ...]
    actions: tuple[Action, ...]
    results: tuple[int, ...]

    def run(self, arguments: Sequence[Tensor], context: Context | None = None) -> list[Tensor]:
        """The results; arguments that are left out are lengths of full examples."""
        context = Context() if context is None else context
        values: Values = [*arguments, *[None] * (len(self.arguments) - len(arguments))]
        for action in self.actions:
            found = action.run(values, context)
            if isinstance(found, tuple):
                values += [found[at] for at in action.results]
            else:
                values.append(found)
        return [values[at] for at in self.results]

    def begun(self) -> Plan:
        """The same, to be run many times with the same weights: what depends on these alone is made once."""
        return replace(self, actions=tuple(action.begun() for action in self.actions))

    def with_computes(self, compute: Callable[[str], Callable[..., Any]]) -> Plan:
        """The same, each node computed by something else."""
        return replace(self, actions=tuple(replace(each, compute=compute(each.node)) for each in self.actions))
