"""The steps of a graph, and plans: the live steps of a body and its calls for some results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from modgraph.backends.torch.run import Padding, Plan, Step
from modgraph.frozen import replace_fields
from modgraph.ir import (
    Graph,
    OpNode,
    Result,
    RouteNode,
    ScanNode,
    find_computed_once,
    free_draws,
    is_free_draw,
    make_forced_key,
)
from modgraph.nn import Parameter
from modgraph.nn.array import expand_over_batch
from modgraph.ops.elementwise import MaskPadding
from modgraph.ops.shape import Flatten, Rename

Computed = OpNode | RouteNode | ScanNode


@dataclass(frozen=True)
class Once:
    """Computes a batch-invariant value once, and expands it to the batch of its first operand.

    `rank` is the number of axes of one example of that operand. The results are followed by the unexpanded ones.
    """

    compute: Callable[..., Any]
    rank: int

    def __call__(self, like: Tensor, *operands: Tensor) -> tuple[Tensor, ...]:
        found = self.compute(*operands)
        each = [expand_over_batch(x, like, self.rank) for x in (found if isinstance(found, tuple) else (found,))]
        return (*(all_ for all_, _ in each), *(one for _, one in each))


def steps_of(graph: Graph, computes: Mapping[str, Callable[..., Any]], share: bool = True) -> list[Step[Result]]:
    """Make the steps of a graph in order; with `share`, batch-invariant values are computed once."""
    once = find_computed_once(graph) if share else frozenset[str]()
    return [_step(graph, node, computes[node.name], once) for node in graph if isinstance(node, Computed)]


def _step(graph: Graph, node: Computed, compute: Callable[..., Any], once: Set[str]) -> Step[Result]:
    operands, lengths = _operands(graph, node, once), graph.lengths(node.name)
    step = Step(node.name, compute, operands)
    if isinstance(node, ScanNode):
        draws = (draw for part in node.region.graph.parts() for draw in free_draws(part.graph))
        step = replace_fields(step, forced_inside=tuple(make_forced_key(draw.name) for draw in draws))
        active = getattr(compute, "over_batch", False)
        return replace_fields(step, length=next(iter(lengths.values()), None), takes_active=active)
    op = node.op if isinstance(node, OpNode) else None
    if node.name in once:
        if op is not None and op.is_array:
            return step
        first = next(iter(graph.inputs(node.name).values()))
        return replace_fields(step, operands=(first, *operands), compute=Once(compute, len(graph.type_of(first).shape)))
    if op is not None and op.outside_training and len(operands) > 1:
        step = replace_fields(step, evaluated=(operands[[*graph.inputs(node.name)].index(op.outside_training)],))
    step = replace_fields(step, forced=make_forced_key(node.name) if is_free_draw(node, graph) else "")
    if op is not None and op.over_batch:
        step = replace_fields(step, takes_active=True, each=op.masks_each)
    if not lengths:
        computes_nothing = isinstance(op, Rename | MaskPadding) or (isinstance(op, Flatten) and op.axes == 1)
        return replace_fields(step, same=operands) if computes_nothing else step
    signature = graph.signature(node)
    padded = [tuple((at + 1, lengths[axis]) for at, axis in each.items()) for each in signature.padding()]
    paddings = (Padding(", ".join(f"{axis} {length}" for axis, length in each), each) for each in padded)
    return replace_fields(step, padding=tuple(paddings), each=signature.declaration.masks_each)


def _operands(graph: Graph, node: Computed, once: Set[str]) -> tuple[Result, ...]:
    """Find the operands of a node; unexpanded results of batch-invariant nodes if the node broadcasts them."""
    inputs = graph.inputs(node.name)
    found = tuple(inputs.values())
    if isinstance(node, OpNode) and node.op.is_array:  # its operand gives the batch size
        return found
    varies = any(each.node not in once and graph.type_of(each).per == "example" for each in found)
    takes_one = node.name in once or (isinstance(node, OpNode) and node.op.broadcasts and varies)
    of_zero = isinstance(node, RouteNode) and node.lowering == "factorised"
    return tuple(
        Result(each.node, each.index + len(graph[each.node].types))
        if each.node in once and (takes_one or (of_zero and slot == "messages"))
        else each
        for slot, each in inputs.items()
    )


@dataclass(frozen=True, eq=False)
class CallSteps:
    """The steps of a call. `nodes` are its nodes in order; `values` are its declared results."""

    instance: Callable[..., Any]
    steps: Steps
    nodes: tuple[str, ...]
    values: tuple[Result, ...]


Steps = Sequence[Step[Result] | CallSteps]


def all_steps(steps: Steps) -> Iterator[Step[Result]]:
    """Yield all steps in order, with those of calls."""
    for each in steps:
        if isinstance(each, CallSteps):
            yield from all_steps(each.steps)
        else:
            yield each


def plan_for(
    steps: Steps, wanted: Iterable[Result], training: bool = True, arguments: Sequence[str] | None = None
) -> Plan:
    """Make the plan that computes some results, without dead steps and without steps that compute nothing.

    Outside training it lacks operands that only training reads. Its arguments are `arguments`, or else the values that
    it reads and does not compute.
    """
    same = {
        Result(step.node): result
        for step in all_steps(steps)
        for result in (step.same if training or not step.evaluated else step.evaluated)
    }
    liveness = _Liveness(training, same)
    ends = [liveness.source(result) for result in wanted]
    liveness.add_read(*ends)
    return liveness.body(steps, ends, None if arguments is None else tuple(map(Result, arguments)))


def _find_dead(steps: Sequence[Step[int]], results: Iterable[int]) -> tuple[tuple[int, ...], ...]:
    """The values that each step is the last to read."""
    read, found = {*results}, []
    for step in reversed(steps):
        own = {*step.operands, *step.lengths}
        found.append(tuple(sorted(own - read)))
        read |= own
    return tuple(reversed(found))


@dataclass(eq=False)
class _Liveness:
    """The results that are read, collected from the last step to the first."""

    training: bool
    same: Mapping[Result, Result]
    read: dict[str, set[int]] = field(default_factory=dict)
    for_one: set[Result] = field(default_factory=set)
    lengths: set[Result] = field(default_factory=set)

    def source(self, result: Result) -> Result:
        """Find the computed result that a result equals."""
        while result in self.same:
            result = self.same[result]
        return result

    def add_read(self, *results: Result) -> None:
        for result in results:
            self.read.setdefault(result.node, set()).add(result.index)

    def body(self, steps: Steps, ends: Sequence[Result], given: tuple[Result, ...] | None = None) -> Plan:
        """Make the plan of a body and its calls for the results `ends`.

        Values have numbers: arguments come first, lengths last among them.
        """
        live: list[tuple[Step[Result], list[Result]]] = []  # from the last to the first, each with its results
        for each in reversed(steps):
            if isinstance(each, CallSteps):
                if asked := self._read_results(each):
                    inner = self.body(each.steps, asked)
                    live.append((Step("", each.instance, inner.arguments, inner=inner), asked))
            elif each.node in self.read and Result(each.node) not in self.same:
                results = [Result(each.node, index) for index in sorted(self.read[each.node])]
                live.append((self._step(each), results))
        live.reverse()
        made = [result for _, results in live for result in results]
        read = dict.fromkeys((*(each for step, _ in live for each in (*step.operands, *step.lengths)), *ends))
        arguments = tuple(sorted((each for each in read if each not in {*made}), key=self.lengths.__contains__))
        assert given is None or {*arguments} <= {*given}, "a region reads what is no argument of it"
        arguments = arguments if given is None else given
        numbers = {result: at for at, result in enumerate((*arguments, *made))}
        with_numbers = tuple(
            step.with_numbers(numbers, tuple(range(len(results)) if step.inner else (each.index for each in results)))
            for step, results in live
        )
        found = tuple(numbers[result] for result in ends)
        lengths = dict.fromkeys(length for step in with_numbers for length in step.lengths)
        return Plan(arguments, with_numbers, found, _find_dead(with_numbers, found), tuple(lengths))

    def _read_results(self, call: CallSteps) -> list[Result]:
        """List the results of a call that are read, its declared results first."""
        read = [Result(name, index) for name in call.nodes for index in sorted(self.read.get(name, ()))]
        values = dict.fromkeys(self.source(value) for value in call.values)
        return [*(value for value in values if value in read), *(each for each in read if each not in values)]

    def _step(self, step: Step[Result]) -> Step[Result]:
        if not self.training and hasattr(type(step.compute), "specialise"):  # scans and routes can drop unread results
            compute, places = step.compute.specialise(  # type: ignore[attr-defined]
                self.read[step.node]
            )
            operands = step.operands if places is None else tuple(step.operands[place] for place in places)
            step = replace_fields(step, compute=compute, operands=operands)
        step = replace_fields(step, operands=tuple(map(self.source, step.operands)))
        self.add_read(*step.operands, *step.lengths)
        self.lengths.update(step.lengths)
        if isinstance(step.compute, Once):
            self.for_one.update(step.operands)
        if not isinstance(step.compute, Parameter) or 0 in self.read[step.node]:
            return step
        return step if Result(step.node, 1) in self.for_one else replace_fields(step, compute=step.compute.bare)
