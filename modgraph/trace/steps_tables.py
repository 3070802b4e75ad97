"""Sub-networks by step to read: a table for each task, and one for each route that no task has for itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from modgraph.trace.steps import ACTIVE, Shares, StepUse, use_by_steps, without_common
from modgraph.trace.steps_by_task import TaskSteps, names_of, shared_routes, steps_by_task
from modgraph.trace.trace import Trace


def steps_tables(trace: Trace) -> list[str]:
    """The tables of a trace, none where no route decides at steps."""
    use = use_by_steps(trace)
    by_task = steps_by_task(trace, use)
    found = [] if by_task is None else [*_of_tasks(by_task)]
    return [*found, *(_of_route(name, each) for name, each in shared_routes(trace, use).items())]


def _of_tasks(told: TaskSteps) -> Iterator[str]:
    rows = told.sub_networks
    names = [f"{pool}.{row.module}{use}" for (pool, use), row in zip(names_of(rows), rows, strict=True)]
    for task, use in told.use.items():
        yield _table(f"{task}: {_what(told.of, 'sub-networks')} by step of {told.axis}", names, use)
    tasks = [*told.use]
    shares = [[f"{share:.0%}" for share in each] for each in told.shares]
    yield "\n".join(["share of tasks in what is taken of a sub-network", *_aligned(["", *tasks], names, shares)])


def _of_route(name: str, told: StepUse) -> str:
    parts = [("", told.modules)] if told.senders is None else [("from ", told.senders), ("to ", told.modules)]
    short = without_common(part.pool for _, part in parts)
    names = [f"{which}{short[part.pool]}.{module}" for which, part in parts for module in range(len(part.steps))]
    shares = [steps for _, part in parts for steps in part.steps]
    return _table(f"{name}: {_what(told.of, 'modules')} by step of {told.axis}", names, shares)


def _what(of: str, what: str) -> str:
    return f"% of examples with {what} active" if of == ACTIVE else f"mean gates of {what} in %"


def _table(title: str, names: Sequence[str], shares: Shares) -> str:
    rows = [[f"{100 * share:.0f}" for share in row] for row in shares]
    return "\n".join([title, *_aligned(["", *map(str, range(len(shares[0])))], names, rows)])


def _aligned(header: Sequence[str], names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widest = max(map(len, names))
    widths = [max(5, *(len(cell) + 2 for cell in column)) for column in zip(header[1:], *rows, strict=True)]
    for name, cells in zip((header[0], *names), (header[1:], *rows), strict=True):
        padded = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        yield f"  {name.ljust(widest)}{''.join(padded)}"
