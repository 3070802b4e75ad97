"""What a trace says in numbers, as JSON and as tables. `docs/trace.md` has the schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from modgraph.store.stored_trace import FORMAT
from modgraph.trace.paths import coactivations, paths_of, paths_tables, together
from modgraph.trace.routes import RouteTrace
from modgraph.trace.statistics import senders_of, shares_of, shown_rounds, statistics_of, use_by_groups
from modgraph.trace.steps import ACTIVE, Shares, StepUse, positions_of, use_by_steps, without_common
from modgraph.trace.tasks import names_of, steps_by_task, tasks_of, use_by_task
from modgraph.trace.trace import Trace
from modgraph.trace.words import typical_words, words_tables
from modgraph.version import VERSION


def as_json(trace: Trace) -> dict[str, Any]:
    """The statistics for tools: routes by name."""
    steps = use_by_steps(trace)
    by_step, _ = steps_by_task(trace, steps)
    return {
        "format": FORMAT,
        "modgraph": VERSION,
        "graph": trace.graph.hash(),
        "epoch": trace.epoch,
        "step": trace.step,
        "split": trace.split,
        "examples": len(trace),
        "routes": _routes(trace, steps),
        "coactivation": coactivations(trace),
        "paths": paths_of(trace),
        "tasks": {target: list(routes) for target, routes in tasks_of(trace).items()},
        "by_task": use_by_task(trace),
        "by_step": by_step,
        "growth": trace.growth,
    }


def _routes(trace: Trace, steps: dict[str, StepUse]) -> dict[str, dict[str, Any]]:
    """The statistics of each route, by its name."""
    positions, words, found = positions_of(trace), typical_words(trace), {}
    for route in trace.routes:
        name = route.name
        summary: dict[str, Any] = {
            "node": route.node,
            "pool": route.pool,
            "router": route.router,
            "selects": route.selects,
            "rounds": [_of_round(route, at) for at in range(route.rounds)],
            "by": use_by_groups(trace, route),
            "together": together(route),
            "training": trace.history[name].tolist() if name in trace.history else [],
            "controller": trace.entropies[name].tolist() if name in trace.entropies else [],
            **statistics_of(route),
        }
        summary |= {"positions": positions[name]} if name in positions else {}
        summary |= {"steps": steps[name]} if name in steps else {}
        summary |= {"words": words[name]} if name in words else {}
        found[name] = summary
    return found


def _of_round(route: RouteTrace, at: int) -> dict[str, Any]:
    """Means over the senders of all examples, padding left out: each module's share of what was selected, or of the
    gates where a router selects nothing; the largest gate; the entropy of a decision."""
    senders = senders_of(route, at)
    use = shares_of(senders.chosen.sum(0)).tolist()
    return {"use": use, "largest_gate": senders.largest_gate, "entropy": senders.entropy}


# ------------------------------------------------------------ tables


def as_table(trace: Trace) -> str:
    """The statistics to read: a table for each route, a column for each round."""
    use = use_by_steps(trace)
    by_task, shared = steps_by_task(trace, use)
    tables = [*map(_route_table, trace.routes), *(_task_tables(by_task) if by_task is not None else ())]
    tables += [_steps_table(name, each) for name, each in shared.items()]
    head = f"{len(trace)} examples of {trace.split}"
    return "\n\n".join([head, *tables, *words_tables(trace), *paths_tables(trace)])


def _route_table(route: RouteTrace) -> str:
    """What a route did round by round, and what is wrong with it."""
    shown, statistics = shown_rounds(route.rounds), statistics_of(route)
    rounds = [_of_round(route, at) for at in shown]
    rows = [["", *(f"round {at + 1}" for at in shown)]] if route.rounds > 1 else []
    for module, shares in enumerate(zip(*(each["use"] for each in rounds), strict=True)):
        rows += [[f"{route.pool}.{module}", *(f"{share:.1%}" for share in shares)]]
    rows += [["largest gate", *(f"{each['largest_gate']:.3f}" for each in rounds)]]
    rows += [["entropy (nats)", *(f"{each['entropy']:.3f}" for each in rounds)]]
    lines = [f"{route.name}: {route.pool} by {route.router}", *_aligned(rows, 10)]
    if statistics["dead"]:
        lines.append(f"  dead: {route.short_pool}.{', '.join(map(str, statistics['dead']))} (never chosen)")
    if statistics["collapsed"]:
        spread = statistics["entropies"]["of_use"]
        lines.append(f"  collapsed: the entropy of use is {spread:.3f}, less than half of log {route.modules}")
    return "\n".join(lines)


def _task_tables(by_task: StepUse) -> Iterator[str]:
    rows = by_task["sub_networks"]
    names = [f"{pool}.{row['module']}{use}" for (pool, use), row in zip(names_of(rows), rows, strict=True)]
    for task, use in by_task["use"].items():
        yield _by_step(task, "sub-networks", by_task, names, use)
    shares = [[name, *(f"{share:.0%}" for share in each)] for name, each in zip(names, by_task["shares"], strict=True)]
    yield "\n".join(
        ["share of tasks in what is taken of a sub-network", *_aligned([["", *by_task["use"]], *shares], 5)]
    )


def _steps_table(name: str, use: StepUse) -> str:
    senders, modules = use["senders"], use["modules"]
    parts = [("", modules)] if senders is None else [("from ", senders), ("to ", modules)]
    short = without_common(part["pool"] for _, part in parts)
    names = [f"{which}{short[part['pool']]}.{module}" for which, part in parts for module in range(len(part["steps"]))]
    return _by_step(name, "modules", use, names, [steps for _, part in parts for steps in part["steps"]])


def _by_step(name: str, what: str, use: StepUse, names: Sequence[str], shares: Shares) -> str:
    measured = f"% of examples with {what} active" if use["of"] == ACTIVE else f"mean gates of {what} in %"
    rows = [[row, *(f"{100 * share:.0f}" for share in each)] for row, each in zip(names, shares, strict=True)]
    table = _aligned([["", *map(str, range(len(shares[0])))], *rows], 5)
    return "\n".join([f"{name}: {measured} by step of {use['axis']}", *table])


def _aligned(rows: Sequence[Sequence[str]], least: int) -> Iterator[str]:
    """Lines of a table, its columns at least so wide."""
    names, *columns = zip(*rows, strict=True)
    widths = [max(least, *(len(cell) + 2 for cell in column)) for column in columns]
    for name, *cells in rows:
        padded = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        yield f"  {name.ljust(max(map(len, names)))}{''.join(padded)}"
