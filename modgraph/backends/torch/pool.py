"""A pool whose modules are compiled from a region."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.backends.torch.construct import Namespace, show
from modgraph.backends.torch.plan import needed, steps_of
from modgraph.backends.torch.run import Plan, Step
from modgraph.ir import OpNode, PoolNode, Region, RouteNode
from modgraph.nn import Gathered, Pool
from modgraph.nn.grouped import SortedRows, Together, taken_by_index, together


class Expert(Namespace):
    """One module of a pool: the region's graph over ops, pools and routers of its own, which `compile` computes."""

    def __init__(self, region: Region, compile: Callable[[Expert], Mapping[str, Callable[..., Any]]]) -> None:
        super().__init__()
        self.region = region
        self.rank = len(region.argument_types[0].shape)
        self.routes = bool(region.graph.of_kind(RouteNode))
        self.computes: Mapping[str, Callable[..., Any]] = {}
        self.plan = Plan()
        self.computes = compile(self)
        self.plan = needed(steps_of(region.graph, self.computes), region.results, arguments=region.arguments)

    def forward(self, x: Tensor) -> Tensor:
        """x [..., message] gives [..., result]. Routes take one axis of examples, [B, message]."""
        lead = x.shape[: x.dim() - self.rank]
        if not self.routes or len(lead) == 1:
            return run_one(self.plan, x)
        y = run_one(self.plan, x.reshape(-1, *x.shape[len(lead) :]))
        return y.reshape(*lead, *y.shape[1:])


class CompiledPool(Pool):
    """A pool of experts. Each runs by itself, and their results are laid side by side at the end; experts that share
    weights run together, op after op, unless they have pools."""

    def __init__(self, node: PoolNode, experts: list[Expert], shared: Namespace | None) -> None:
        super().__init__(experts, shared, len(node.message.shape), len(node.result.shape))
        self.region = node.region(0)
        ops = self.region.graph.of_kind(OpNode) if node.alike and not node.has_pools else []
        self.columns: dict[str, list[Any]] = {op.name: [each.computes[op.name] for each in experts] for op in ops}
        self.of_one = Plan()
        self.together: Plan | None = None
        if self.columns:
            steps = steps_of(self.region.graph, dict.fromkeys(self.columns, _unlike), alone=False)
            self.of_one = needed(steps, self.region.results, arguments=self.region.arguments)
            self.together = None if shared is None else self.of_one.with_computes(self._by_rows)

    def __repr__(self) -> str:
        return show(self, Namespace)

    def _by_rows(self, step: Step[int]) -> Callable[..., Any]:
        """An op done for all modules, each on its row."""
        op = self.region.graph[step.node]
        assert isinstance(op, OpNode)
        rank = len(self.region.graph.signature(op).operands[0].shape)
        return partial(rows_of, self.columns[op.name], rank, len(op.types[0].shape))

    def rows(self, x: Tensor) -> Tensor:
        """Module j on row j of x [..., M, message]: [..., M, result]."""
        return super().rows(x) if self.together is None else run_one(self.together, x)

    def all(self, x: Tensor) -> Tensor:
        """Every module on x [..., message]: [..., M, result]."""
        return self.each(lambda j: x) if self.together is None else super().all(x)

    def gathered(self) -> Gathered:
        """The same modules with their weights stacked, once, so that they are taken by index."""
        taken = {name: taken_by_index(column) for name, column in self.columns.items()}

        def chosen(module_E: Tensor, x: Tensor) -> Tensor:
            return run_one(self.of_one.with_computes(lambda step: partial(taken[step.node], module_E)), x)

        return Gathered(self, chosen)

    def at_once(self) -> Together | None:
        """All modules on rows that are sorted by module; None where some op has no such form, or they are unlike."""
        found = {name: together(column) for name, column in self.columns.items()}
        if not found or None in found.values():
            return None

        def all_rows(rows: SortedRows, x: Tensor) -> Tensor:
            computes = {name: partial(each, rows) for name, each in found.items() if each is not None}
            return run_one(self.of_one.with_computes(lambda step: computes[step.node]), x)

        return all_rows


def run_one(plan: Plan, x: Tensor) -> Tensor:
    """The result of a module's region for its argument."""
    return plan.run((x,))[0]


def _unlike(*values: Tensor) -> Tensor:
    raise AssertionError("unlike modules have no weights in common")


def rows_of(column: list[nn.Module], rank: int, result_rank: int, *values: Tensor) -> Any:
    """One op of every module, each on its row: those that share weights do it together, those without any are all the
    same."""
    together = getattr(type(column[0]), "rows", None)
    if together is not None:
        return together(column, *values)
    if not any(True for _ in column[0].parameters()):
        return column[0](*values)
    rows = zip(*(value.unbind(-rank - 1) for value in values), strict=True)
    results = [module(*row) for module, row in zip(column, rows, strict=True)]
    return torch.stack(results, dim=-result_rank - 1)
