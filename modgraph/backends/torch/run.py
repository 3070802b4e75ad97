"""Steps that compute nodes, and plans that run them on numbered values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from torch import Tensor, nn

from modgraph.frozen import replace_fields
from modgraph.ir import Result
from modgraph.nn import TokenChoice, valid_along
from modgraph.nn.padding import both

Values = list[Any]  # tensors, and None for absent lengths
V = TypeVar("V")  # a reference to a value: a result of the graph, or its number in a plan
W = TypeVar("W")


@dataclass(eq=False)
class Context:
    """State that the bodies of one call of a model share.

    `forced` has choices of draws by name. `active` [B] is false for examples that ended before a step of a scan.
    `masks` caches padding masks.
    """

    forced: Mapping[str, Tensor] = field(default_factory=dict)
    active: Tensor | None = None
    masks: dict[tuple[str, int], Tensor | None] = field(default_factory=dict)

    @property
    def is_plain(self) -> bool:
        """Whether no choice is forced, and no example has ended."""
        return not self.forced and self.active is None


@dataclass(frozen=True)
class Padding(Generic[V]):
    """The padded axes of an operand [B, ...], counted from 1, and the values with their lengths.

    Operands with equal names and ranks have equal masks.
    """

    name: str = ""
    lengths: tuple[tuple[int, V], ...] = ()

    def with_numbers(self, number: Callable[[V], W]) -> Padding[W]:
        return Padding(self.name, tuple((axis, number(length)) for axis, length in self.lengths))


NO_PADDING: Padding[Any] = Padding()


def mask_of(padding: Padding[int], x: Tensor, values: Values, context: Context) -> Tensor | None:
    """The padding mask of x, which broadcasts against it; None without padded axes."""
    name = (padding.name, x.dim())
    if name not in context.masks:
        lengths = {axis: values[at] for axis, at in padding.lengths if values[at] is not None}
        context.masks[name] = valid_along(x, lengths)
    return context.masks[name]


@dataclass(frozen=True, eq=False)
class Step(Generic[V]):
    """The computation of one node, or of a call, which runs its `inner` plan.

    `padding` is that of the operands whose masks it takes: of `each`, or of the first. A scan takes the `length`
    itself. `forced` names the forced choice of a draw in the context, `forced_inside` those of draws in a scan. With
    `takes_active` it masks examples that ended before a step of a scan. A step that computes nothing is the `same` as
    its operand; `evaluated` is the operand that it returns outside training. `results` are the places of its results
    that others read.
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
    plain: bool = False  # it takes only operands
    call: Any = None  # the function to call, in a plan

    @property
    def lengths(self) -> list[V]:
        """The lengths that it reads."""
        found = [length for each in self.padding for _, length in each.lengths]
        return list(dict.fromkeys([*found, *([] if self.length is None else [self.length])]))

    def with_numbers(self, numbers: Mapping[V, int], results: tuple[int, ...]) -> Step[int]:
        """The step with numbers in place of results, of which others read those at the places `results`."""
        changes: Any = {
            "results": results,
            "operands": tuple(numbers[each] for each in self.operands),
            "padding": tuple(each.with_numbers(numbers.__getitem__) for each in self.padding),
            "length": None if self.length is None else numbers[self.length],
            "call": find_call(self.compute),
            "plain": not (self.padding or self.length or self.forced or self.forced_inside or self.takes_active),
        }
        step: Step[Any] = replace_fields(self, **changes)
        return step


def find_call(compute: Any) -> Callable[..., Any]:
    """Find the function to call: of an op without weights and hooks, its `forward` alone."""
    is_plain = isinstance(compute, nn.Module) and not (compute._parameters or compute._buffers or compute._modules)
    is_plain = is_plain and not (compute._forward_hooks or compute._forward_pre_hooks)
    call: Callable[..., Any] = compute.forward if is_plain else compute
    return call


def run_step(step: Step[int], values: Values, context: Context) -> Any:
    """Run one step; returns a tensor, or a tuple if it has several results."""
    operands = [values[at] for at in step.operands]
    if step.inner is not None:
        return step.compute(*operands, plan=step.inner, context=context)
    if step.plain:
        return step.call(*operands)
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
    return step.call(*operands, **named)


def _take(found: Any, places: Sequence[int]) -> list[Any]:
    return [found[at] for at in places] if isinstance(found, tuple) else [found]


@dataclass(frozen=True, eq=False)
class Plan:
    """Computes results of a body from its arguments: these are the first values, and each step appends its results.

    After each step it drops its `dead` values, which no later one reads.
    """

    arguments: tuple[Result, ...] = ()
    steps: tuple[Step[int], ...] = ()
    results: tuple[int, ...] = ()
    dead: tuple[tuple[int, ...], ...] = ()
    lengths: tuple[int, ...] = ()  # the values that steps read as lengths

    def run(self, arguments: Sequence[Tensor], context: Context | None = None) -> list[Tensor]:
        """Run all steps. Missing arguments are lengths; their examples are full."""
        values: Values = [*arguments, *[None] * (len(self.arguments) - len(arguments))]
        if (context is None or context.is_plain) and all(values[at] is None for at in self.lengths):
            return self._run_full(values)
        context = Context() if context is None else context
        for step, dead in zip(self.steps, self.dead, strict=True):
            values += _take(run_step(step, values, context), step.results)
            for at in dead:
                values[at] = None
        return [values[at] for at in self.results]

    def _run_full(self, values: Values) -> list[Tensor]:
        """Run all steps on full examples: no step takes a mask, a length or a forced choice."""
        for step, dead in zip(self.steps, self.dead, strict=True):
            operands = [values[at] for at in step.operands]
            found = step.call(*operands) if step.inner is None else step.compute(*operands, plan=step.inner)
            if isinstance(found, tuple):
                values += [found[at] for at in step.results]
            else:
                values.append(found)
            for at in dead:
                values[at] = None
        return [values[at] for at in self.results]

    def with_computes(self, compute: Callable[[Step[int]], Callable[..., Any]]) -> Plan:
        """The plan with another function for each node, in calls too."""
        steps = []
        for step in self.steps:
            found = step.compute if step.inner is not None else compute(step)
            inner = None if step.inner is None else step.inner.with_computes(compute)
            same = found is step.compute and inner is None
            steps.append(step if same else replace_fields(step, compute=found, call=find_call(found), inner=inner))
        return replace_fields(self, steps=tuple(steps))


@dataclass(frozen=True, eq=False)
class CompiledRoute:
    """A route: a lowering's module with its pool and router.

    A `single` token has no axis of tokens; the lowering gets one of size 1, and the result loses it. With `takes_one`
    the lowering takes a token and other operands without that axis; the first `records` get one.
    """

    lowering: Any
    pool: Any
    router: Any
    single: bool
    result_rank: int
    one_for_each_token: bool
    takes_one: bool = False
    records: int = 0
    once: bool = False

    def specialise(self, read: Set[int]) -> tuple[CompiledRoute, None]:
        """The route outside training without records that nothing reads. It needs all operands."""
        if not read <= {0} or not isinstance(self.router, TokenChoice):
            return self, None
        router = copy(self.router)
        router.record_choice = False
        return replace_fields(self, router=router), None

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
    """The function of a step that runs many times with the same weights: stacks those of a `once` route now."""
    route = step.compute
    if not (isinstance(route, CompiledRoute) and route.once):
        return route
    return replace_fields(route, pool=route.pool.stack_weights())
