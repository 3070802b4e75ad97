"""What a trace says in numbers, as JSON and as tables. `docs/trace.md` has the schema."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from modgraph.store.stored_trace import FORMAT
from modgraph.trace.coactivation import coactivations, together
from modgraph.trace.entropies import entropies, shares_of
from modgraph.trace.groups import use_by_groups
from modgraph.trace.paths import paths_of, paths_tables
from modgraph.trace.positions import positions_of
from modgraph.trace.rounds import shown_rounds
from modgraph.trace.routes import RouteTrace
from modgraph.trace.statistics import mean_of, real_senders, statistics_of
from modgraph.trace.steps import use_by_steps
from modgraph.trace.steps_by_task import steps_by_task
from modgraph.trace.steps_tables import steps_tables
from modgraph.trace.tasks import tasks_of, use_by_task
from modgraph.trace.trace import Trace
from modgraph.trace.words import typical_words, words_tables
from modgraph.version import VERSION


def as_json(trace: Trace) -> dict[str, Any]:
    """The statistics for tools: routes by name."""
    return {
        "format": FORMAT,
        "modgraph": VERSION,
        "graph": trace.graph.hash(),
        "epoch": trace.epoch,
        "step": trace.step,
        "split": trace.split,
        "examples": len(trace),
        "routes": _routes(trace),
        "coactivation": [asdict(each) for each in coactivations(trace)],
        "paths": [asdict(each) for each in paths_of(trace)],
        "tasks": {target: list(routes) for target, routes in tasks_of(trace).items()},
        "by_task": use_by_task(trace),
        "by_step": asdict(by_step) if (by_step := steps_by_task(trace, use_by_steps(trace))) is not None else None,
        "growth": trace.growth,
    }


def _routes(trace: Trace) -> dict[str, dict[str, Any]]:
    """What is told of each route, by its name."""
    positions, words, steps = positions_of(trace), typical_words(trace), use_by_steps(trace)
    found = {}
    for route in trace.routes:
        told: dict[str, Any] = {
            "node": route.node,
            "pool": route.pool,
            "router": route.router,
            "selects": route.selects,
            "rounds": [_of_round(route, at) for at in range(route.rounds)],
            "by": use_by_groups(trace, route),
            "together": together(route),
            "training": trace.history[route.name].tolist() if route.name in trace.history else [],
            "controller": trace.entropies[route.name].tolist() if route.name in trace.entropies else [],
            **asdict(statistics_of(route)),
        }
        told |= {"positions": asdict(positions[route.name])} if route.name in positions else {}
        told |= {"steps": asdict(steps[route.name])} if route.name in steps else {}
        if route.name in words:
            told["words"] = [[asdict(word) for word in of_module] for of_module in words[route.name]]
        found[route.name] = told
    return found


def as_table(trace: Trace) -> str:
    """The statistics to read: a table for each route, a column for each round."""
    head = f"{len(trace)} examples of {trace.split}"
    return "\n\n".join(
        [head, *map(_table, trace.routes), *steps_tables(trace), *words_tables(trace), *paths_tables(trace)]
    )


def _of_round(route: RouteTrace, at: int) -> dict[str, Any]:
    """Means over the senders of all examples, padding left out: each module's share of what was selected, or of the
    gates where a router selects nothing; the largest gate; the entropy of a decision."""
    real = real_senders(route, at)
    gates, chosen = (np.asarray(each[at][real], np.float64) for each in (route.gates, route.chosen))
    return {
        "use": shares_of(chosen.sum(0)).tolist(),
        "largest_gate": mean_of(gates.max(-1)),
        "entropy": mean_of(entropies(route, at)[real]),
    }


def _table(route: RouteTrace) -> str:
    shown = shown_rounds(route.rounds)
    rounds = [_of_round(route, at) for at in shown]
    rows = [["", *(f"round {at + 1}" for at in shown)]] if route.rounds > 1 else []
    for module, shares in enumerate(zip(*(each["use"] for each in rounds), strict=True)):
        rows += [[f"{route.pool}.{module}", *(f"{share:.1%}" for share in shares)]]
    rows += [["largest gate", *(f"{each['largest_gate']:.3f}" for each in rounds)]]
    rows += [["entropy (nats)", *(f"{each['entropy']:.3f}" for each in rounds)]]
    head = f"{route.name}: {route.pool} by {route.router}"
    return "\n".join([head, *_aligned(rows), *_wrong(route)])


def _wrong(route: RouteTrace) -> list[str]:
    """What is wrong with a route: modules that are never chosen, and few that take all."""
    found, lines = statistics_of(route), []
    if found.dead:
        lines.append(f"  dead: {route.short_pool}.{', '.join(map(str, found.dead))} (never chosen)")
    if found.collapsed:
        spread = found.entropies.of_use
        lines.append(f"  collapsed: the entropy of use is {spread:.3f}, less than half of log {route.modules}")
    return lines


def _aligned(rows: list[list[str]]) -> list[str]:
    widest = max(len(row[0]) for row in rows)
    return ["  " + row[0].ljust(widest) + "".join(cell.rjust(10) for cell in row[1:]) for row in rows]
