"""Steps that compute nodes, and plans that run them on values that have numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from torch import Tensor

from modgraph.ir import Result
from modgraph.nn import valid_along
from modgraph.nn.padding import both

Values = list[Any]  # tensors, and None for lengths that are not given
V = TypeVar("V")  # what stands for a value: a result of the graph, or its number in a plan
W = TypeVar("W")


@dataclass(eq=False)
class Context:
    """What the bodies of one call of a model have in common.

    `forced` has choices of draws by name. `active` says which examples [B] reach a step of a scan. `masks` are kept by
    the first that needs them.
    """

    forced: Mapping[str, Tensor] = field(default_factory=dict)
    active: Tensor | None = None
    masks: dict[tuple[str, int], Tensor | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Padding(Generic[V]):
    """Axes of an operand [B, ...] that hold padding, counted from 1, and the values that tell its lengths; masks of one
    name and as many axes are the same."""

    name: str = ""
    lengths: tuple[tuple[int, V], ...] = ()

    def with_numbers(self, number: Callable[[V], W]) -> Padding[W]:
        return Padding(self.name, tuple((axis, number(length)) for axis, length in self.lengths))


NO_PADDING: Padding[Any] = Padding()


def mask_of(padding: Padding[int], x: Tensor, values: Values, context: Context) -> Tensor | None:
    """Which places are no padding, as a mask that broadcasts against x; None where all are."""
    name = (padding.name, x.dim())
    if name not in context.masks:
        lengths = {axis: values[at] for axis, at in padding.lengths if values[at] is not None}
        context.masks[name] = valid_along(x, lengths)
    return context.masks[name]


@dataclass(frozen=True, eq=False)
class Step(Generic[V]):
    """One node's work, or a call's, which runs its `inner` plan.

    `padding` is that of each operand whose mask it takes: of `each`, or of the first alone. A scan takes the `length`
    itself. `forced` is under what name the context may hold what a draw is to take, `forced_inside` of the draws within
    a scan. `takes_active` says that it leaves out examples that have ended before a step of a scan. What computes
    nothing is the `same` as its operand; `evaluated` is the one of several that it is outside training. `results` are
    those of its results that others read.
    """

    node: str
    compute: Callable[..., Any]
    operands: tuple[V, ...]
    padding: tuple[Padding[V], ...] = ()
    each: bool = False
    length: V | None = None
    forced: str = ""
    forced_inside: tuple[str, ...] = ()
    takes_active: bool = False
    same: tuple[Result, ...] = ()
    evaluated: tuple[Result, ...] = ()
    results: tuple[int, ...] = (0,)
    inner: Plan | None = None
    plain: bool = False  # it takes nothing but operands

    @property
    def lengths(self) -> list[V]:
        """The values that tell it of padding."""
        found = [length for each in self.padding for _, length in each.lengths]
        return list(dict.fromkeys([*found, *([] if self.length is None else [self.length])]))

    def with_numbers(self, numbers: Mapping[V, int]) -> Step[int]:
        """The same for values with numbers."""
        changes: Any = {
            "operands": tuple(numbers[each] for each in self.operands),
            "padding": tuple(each.with_numbers(numbers.__getitem__) for each in self.padding),
            "length": None if self.length is None else numbers[self.length],
            "plain": not (self.padding or self.length or self.forced or self.forced_inside or self.takes_active),
        }
        step: Step[Any] = replace(self, **changes)
        return step


def run_step(step: Step[int], values: Values, context: Context) -> Any:
    """What a step computes."""
    operands = [values[at] for at in step.operands]
    if step.inner is not None:
        return step.compute(*operands, plan=step.inner, context=context)
    if step.plain:
        return step.compute(*operands)
    named: dict[str, Any] = {}
    if step.length is not None:
        named["length"] = values[step.length]
    active = context.active if step.takes_active else None
    if step.padding or active is not None:
        paddings = step.padding or (NO_PADDING,) * len(operands)
        masks = tuple(mask_of(each, x, values, context) for each, x in zip(paddings, operands, strict=False))
        if active is not None:
            shapes = [(-1, *[1] * (x.dim() - 1)) for x in operands]
            masks = tuple(both(mask, active.reshape(shape)) for mask, shape in zip(masks, shapes, strict=True))
        named["mask"] = masks if step.each else masks[0]
    if context.forced and (step.forced in context.forced):
        named["forced"] = context.forced[step.forced]
    elif context.forced and step.forced_inside:
        inside = {name: context.forced[name] for name in step.forced_inside if name in context.forced}
        named |= {"forced": inside} if inside else {}
    return step.compute(*operands, **named)


@dataclass(frozen=True, eq=False)
class Plan:
    """What computes some results of a body from its arguments. The arguments are the first values; each step appends
    those of its results that are read."""

    arguments: tuple[Result, ...] = ()
    steps: tuple[Step[int], ...] = ()
    results: tuple[int, ...] = ()

    def run(self, arguments: Sequence[Tensor], context: Context | None = None) -> list[Tensor]:
        """The results; arguments that are left out are lengths of full examples."""
        context = Context() if context is None else context
        values: Values = [*arguments, *[None] * (len(self.arguments) - len(arguments))]
        for step in self.steps:
            found = run_step(step, values, context)
            if isinstance(found, tuple):
                values += [found[at] for at in step.results]
            else:
                values.append(found)
        return [values[at] for at in self.results]

    def with_computes(self, compute: Callable[[Step[int]], Callable[..., Any]]) -> Plan:
        """The same, each node computed by something else, in calls too."""
        steps = []
        for step in self.steps:
            found = step.compute if step.inner is not None else compute(step)
            inner = None if step.inner is None else step.inner.with_computes(compute)
            same = found is step.compute and inner is None
            steps.append(step if same else replace(step, compute=found, inner=inner))
        return replace(self, steps=tuple(steps))


@dataclass(frozen=True, eq=False)
class CompiledRoute:
    """One place where a router sends messages through a pool. A value without an axis of senders is a single sender;
    a result for each sender then has none either. `alone`: the form takes it so, and all else without that axis too;
    what it records, of which so many are results, has one."""

    lowering: Any
    pool: Any
    router: Any
    single: bool
    result_rank: int
    one_for_each_token: bool
    takes_one: bool = False
    records: int = 0
    once: bool = False

    def __call__(self, tokens: Tensor, *others: Tensor, mask: Tensor | None = None) -> Any:
        if self.takes_one:
            value, *records = self.lowering(tokens, self.pool, self.router, *others)
            return (value, *(each.unsqueeze(-2) for each in records[: self.records]))
        if not self.single:
            return self.lowering(tokens, self.pool, self.router, *others, mask=mask)
        results = self.lowering(tokens.unsqueeze(-self.pool.rank - 1), self.pool, self.router, *others)
        if not self.one_for_each_token:
            return results
        value, *records = results
        return (value.squeeze(-self.result_rank - 1), *records)


def stack_once(step: Step[int]) -> Callable[..., Any]:
    """What computes a step many times with the same weights: those that are stacked once are stacked here."""
    route = step.compute
    return replace(route, pool=route.pool.stack_weights()) if isinstance(route, CompiledRoute) and route.once else route
