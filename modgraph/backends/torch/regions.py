"""Pools and scans compiled from regions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from copy import copy
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.backends.torch.construct import Namespace, show
from modgraph.backends.torch.plan import Steps, all_steps, plan_for, steps_of
from modgraph.backends.torch.run import Context, Plan, stack_once
from modgraph.declare import sizes
from modgraph.ir import OpNode, PoolNode, Region, RouteNode, ScanNode
from modgraph.nn import Pool, loop, scan
from modgraph.nn.exchange import sum_over
from modgraph.nn.grouped import GroupedFunction, Stack, can_stack, expand_axis
from modgraph.nn.pool import IndexedFunction
from modgraph.nn.scan import Step as ScanStep
from modgraph.nn.until import Round, take_rows


class Expert(Namespace):
    """One module of a pool: a region over its own ops, pools and routers, which `compile` constructs."""

    def __init__(self, region: Region, compile: Callable[[Expert], Mapping[str, Callable[..., Any]]]) -> None:
        super().__init__()
        self.region = region
        self.rank = len(region.argument_types[0].shape)
        self.routes = bool(region.graph.nodes_of(RouteNode))
        self.computes: Mapping[str, Callable[..., Any]] = {}
        self.plan = Plan()
        self.computes = compile(self)
        self.plan = plan_for(steps_of(region.graph, self.computes), region.results, arguments=region.arguments)

    def forward(self, x: Tensor) -> Tensor:
        """x [..., message] gives [..., result]. Routes in a region take one outer axis, [B, message]."""
        lead = x.shape[: x.dim() - self.rank]
        if not self.routes or len(lead) == 1:
            return run_one(self.plan, x)
        y = run_one(self.plan, x.reshape(-1, *x.shape[len(lead) :]))
        return y.reshape(*lead, *y.shape[1:])


class CompiledPool(Pool):
    """A pool of experts. Each runs by itself, and the results are stacked.

    Experts that share weights run together, op by op, unless they have pools.
    """

    def __init__(self, node: PoolNode, experts: list[Expert], shared: Namespace | None) -> None:
        super().__init__(experts, shared, len(node.message.shape), len(node.result.shape))
        self.region = node.region(0)
        graph = self.region.graph
        ops = graph.nodes_of(OpNode) if node.is_homogeneous and not node.has_pools else []
        self.columns: dict[str, list[Any]] = {op.name: [each.computes[op.name] for each in experts] for op in ops}
        self.ranks = {op.name: [len(each.shape) for each in graph.signature(op).operands] for op in ops}
        self.stacks_all = bool(ops) and all(can_stack(column[0]) for column in self.columns.values())
        self.as_rows = self.stacks_all and shared is not None
        self.of_one = Plan()
        if self.stacks_all:
            steps = steps_of(graph, dict.fromkeys(self.columns, _unlike), share=False)
            self.of_one = plan_for(steps, self.region.results, arguments=self.region.arguments)

    def __repr__(self) -> str:
        return show(self)

    def stacks(self) -> dict[str, Stack]:
        """The stacked weights of each op."""
        return {name: Stack.from_modules(column) for name, column in self.columns.items()}

    def _run(self, x: Tensor, compute: Callable[[str], Callable[..., Any]]) -> Tensor:
        """Run the region with a function for each op."""
        return run_one(self.of_one.with_computes(lambda step: compute(step.node)), x)

    def rows(self, x: Tensor) -> Tensor:
        return self.run_rows(x) if self.as_rows else super().rows(x)

    def all(self, x: Tensor) -> Tensor:
        return self.run_all(x) if self.as_rows else self.each(lambda j: x)

    def run_rows(self, x: Tensor) -> Tensor:
        """Apply module j to row j of x [..., M, message], op by op on stacked weights."""
        stacks = self.stacks()
        return self._run(x, lambda op: partial(stacks[op].run_rows, self.ranks[op]))

    def run_all(self, x: Tensor) -> Tensor:
        """Apply every module to x [..., message], op by op on stacked weights."""
        y = self.run_rows(x.unsqueeze(-self.rank - 1))
        return expand_axis(y, -self.result_rank - 1, self.size)

    def stack_weights(self) -> IndexedFunction:
        stacks = self.stacks()
        return lambda module_E, x: self._run(x, lambda op: partial(stacks[op].run_indexed, module_E))

    def group_modules(self) -> GroupedFunction | None:
        """Make a function of rows sorted by module; None if an op has no such form or the pool is not homogeneous."""
        if not self.stacks_all:
            return None
        stacks = self.stacks()
        return lambda rows, x: self._run(x, lambda op: partial(stacks[op].run_sorted, rows))


def run_one(plan: Plan, x: Tensor) -> Tensor:
    """Run a module's region on its argument."""
    return plan.run((x,))[0]


def _unlike(*values: Tensor) -> Tensor:
    raise AssertionError("unlike modules have no weights in common")


class CompiledScan:
    """Runs a region along a sequence. The model owns its weights."""

    def __init__(self, node: ScanNode, steps: Steps, slots: Sequence[str], model: nn.Module) -> None:
        self.node = node
        self.steps = steps
        self.slots = [*slots]
        self.states = node.states
        self.stacked: Sequence[int] = range(len(node.stacked))
        types = {state: node.region.graph[state].types[0] for state in node.states}
        self.shapes = {state: sizes(type_.shape) for state, type_ in types.items() if not type_.padded}
        self.model = model
        self.over_batch = any(step.takes_active for step in all_steps(steps))
        self.plan = plan_for(steps, node.region.results, arguments=self.arguments)

    @property
    def captured(self) -> list[str]:
        """The slots of captured values, equal at each step."""
        return [slot for slot in self.slots if slot != self.node.variable and slot not in self.node.states]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of a step."""
        return (self.node.variable, *self.states, *self.captured)

    def specialise(self, read: Set[int]) -> tuple[CompiledScan, list[int]]:
        """The scan outside training with only the results that are read, and the places of the operands that it needs.

        It lacks states that these do not depend on, and values that only training reads.
        """
        following = dict(zip(self.node.states, self.node.following, strict=True))
        ends = self.node.steering[self.node.carried :]
        stacked, states = sorted(read), tuple[str, ...]()
        while True:
            results = (self.node.stacked[index] for index in stacked)
            wanted = (*(following[state] for state in states), *ends, *results)
            reads = {result.node for result in plan_for(self.steps, wanted, training=False).arguments}
            found = tuple(state for state in self.node.states if state in reads)
            if found == states:
                break
            states = found
        places = [place for place, slot in enumerate(self.slots) if slot in {self.node.variable, *reads}]
        scan = copy(self)
        scan.states, scan.stacked = states, stacked
        scan.slots = [self.slots[place] for place in places]
        scan.plan = plan_for(self.steps, wanted, training=False, arguments=scan.arguments)
        return scan, places

    def __call__(
        self,
        *operands: Tensor,
        length: Tensor | None = None,
        forced: Mapping[str, Tensor] | None = None,
        mask: Tensor | None = None,
    ) -> tuple[Tensor | None, ...]:
        """Operands, batch first, give the stacked results [B, T, ...], None for those that nothing reads.

        `forced` has choices of draws for each step, [B, T, ...] by name; the mask [B, 1, ...] is true for examples
        that reach this scan, if it is in a step of another.
        """
        given = dict(zip(self.slots, operands, strict=True))
        sequence, captured = given[self.node.variable], [given[slot] for slot in self.captured]
        states = [given[state] if state in given else self._zeros(sequence, state) for state in self.states]
        plan, forced = self.plan.with_computes(stack_once), forced or {}
        active: list[Tensor] = []  # a mask [B, T] of the examples that reach each step, if an op needs it
        if length is not None and self.over_batch and not torch.compiler.is_exporting():
            active = [torch.arange(sequence.shape[1], device=sequence.device) < length.to(sequence.device)[:, None]]
        if mask is not None and not torch.compiler.is_exporting():
            reached = mask.reshape(-1, 1).expand(*sequence.shape[:2])
            active = [reached & active[0] if active else reached]

        def step_of(captured: Sequence[Any]) -> ScanStep:
            def step(slices: Sequence[Tensor], states: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
                x, *taken = slices
                now = taken.pop() if active else None
                found = plan.run((x, *states, *captured), Context(dict(zip(forced, taken, strict=True)), now))
                return found[: len(states)], found[len(states) :]

            return step

        results = self._go(step_of, captured, (sequence, *forced.values(), *active), states, length)
        found = dict(zip(self.stacked, results, strict=True))
        return tuple(found.get(index) for index in range(len(self.node.stacked)))

    def _go(
        self,
        step_of: Callable[[Sequence[Any]], ScanStep],
        captured: Sequence[Any],
        sequences: Sequence[Tensor],
        states: Sequence[Tensor],
        length: Tensor | None,
    ) -> list[Tensor]:
        """Run all steps. `step_of` makes the function of a step with some captured values."""
        return scan(step_of(captured), sequences, states, length)

    def _zeros(self, sequence: Tensor, state: str) -> Tensor:
        """The initial state: zeros in the dtype of the sequence, or of the model's weights if that holds ids."""
        floats = (each.dtype for each in (sequence, *self.model.parameters()) if each.is_floating_point())
        dtype = next(floats, torch.get_default_dtype())
        return torch.zeros(sequence.shape[0], *self.shapes[state], dtype=dtype, device=sequence.device)


class CompiledLoop(CompiledScan):
    """Runs a region until nothing goes on, or along a whole sequence."""

    def _go(
        self,
        step_of: Callable[[Sequence[Any]], ScanStep],
        captured: Sequence[Any],
        sequences: Sequence[Tensor],
        states: Sequence[Tensor],
        length: Tensor | None,
    ) -> list[Tensor]:
        types = [self.node.region.graph[slot].types[0] for slot in self.captured]
        stacked = (self.node.stacked[index] for index in self.stacked if index >= self.node.final)
        shared = [*map(self.node.count_own_axes, stacked)]

        def narrow(rows: Tensor) -> Round:
            pairs = zip(types, captured, strict=True)
            own = [x if x is None or type_.per == "batch" else take_rows(x, rows) for type_, x in pairs]
            return as_round(step_of(own))

        return loop(as_round(step_of(captured)), sequences, states, shared, length, narrow, self._agree)

    def _agree(self, ended: bool) -> bool:
        """Whether to end the loop. Processes that divide the pools of its steps end it together."""
        group = getattr(self.model, "group", None)
        if group is None or not any(part.graph.nodes_of(RouteNode) for part in self.node.region.graph.parts()):
            return ended
        weight = next(self.model.parameters(), torch.empty(0))
        return bool(sum_over(torch.tensor(not ended, device=weight.device).long(), group) == 0)


def as_round(step: ScanStep) -> Round:
    """The function of a step that gives the value which ends entries by itself."""

    def run(slices: Sequence[Tensor], states: Sequence[Tensor]) -> tuple[Any, Tensor, Any]:
        following, (going, *results) = step(slices, states)
        return following, going, results

    return run
