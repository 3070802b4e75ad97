"""Statistics of a trace: how much each module was used, and how decided the routers were."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.trace.entropies import entropies
from modgraph.trace.groups import groupings_of, use_by_group
from modgraph.trace.paths import paths_of, paths_tables
from modgraph.trace.record import RouteTrace
from modgraph.trace.rounds import shown_rounds
from modgraph.trace.trace import Trace
from modgraph.trace.words import typical_words, words_tables
from modgraph.version import VERSION


@dataclass(frozen=True)
class RoundSummary:
    """Means over the senders of all examples, padding left out.

    `use` is each module's share of what was selected, or of the gates where a router selects nothing. `entropy` is
    in nats that of the distribution that a router chooses from, or of a sender's gates, scaled to sum to one.
    """

    use: list[float]
    largest_gate: float
    entropy: float


@dataclass(frozen=True)
class RouteSummary:
    """The statistics of one route, after each round; each module's share `by` class and group after the last, and in
    each epoch of the `training`."""

    route: str
    pool: str
    router: str
    rounds: list[RoundSummary]
    by: dict[str, dict[str, list[float]]]
    training: list[list[float]]


def summarise(trace: Trace) -> list[RouteSummary]:
    """The statistics of every route."""
    return [
        RouteSummary(
            route.name,
            route.pool,
            str(route.router),
            rounds=[_of_round(route, at) for at in range(route.rounds)],
            by={name: use_by_group(route, words) for name, words in groupings_of(trace).items()},
            training=trace.history[route.name].tolist() if route.name in trace.history else [],
        )
        for route in trace.routes
    ]


def as_json(trace: Trace) -> dict[str, Any]:
    """The statistics for tools: routes by name."""
    routes = {each.route: asdict(each) for each in summarise(trace)}
    for route in routes.values():
        del route["route"]
    for name, words in typical_words(trace).items():
        routes[name]["words"] = [[asdict(word) for word in of_module] for of_module in words]
    paths = [asdict(each) for each in paths_of(trace)]
    return {"modgraph": VERSION, "split": trace.split, "examples": len(trace), "routes": routes, "paths": paths}


def as_table(trace: Trace) -> str:
    """The statistics to read: a table for each route, a column for each round."""
    head = f"{len(trace)} examples of {trace.split}"
    return "\n\n".join([head, *(_table(each) for each in summarise(trace)), *words_tables(trace), *paths_tables(trace)])


def _of_round(route: RouteTrace, at: int) -> RoundSummary:
    gates = _real(route.gates[at], route.gates[at])
    chosen = _real(route.chosen[at], route.gates[at])
    return RoundSummary(
        use=(chosen.sum(0) / max(chosen.sum(), 1e-300)).tolist(),
        largest_gate=_mean(gates.max(-1)),
        entropy=_mean(entropies(route, at)[route.gates[at].sum(-1) > 0]),
    )


def _real(values: NDArray[Any], gates: NDArray[Any]) -> NDArray[np.float64]:
    """The rows of senders that sent anything, [S, M]: padding has no gates."""
    sent = gates.sum(-1) > 0
    return np.asarray(values[sent], np.float64)


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if values.size else 0.0


def _table(summary: RouteSummary) -> str:
    shown = shown_rounds(len(summary.rounds))
    rounds = [summary.rounds[at] for at in shown]
    rows = [["", *(f"round {at + 1}" for at in shown)]] if len(summary.rounds) > 1 else []
    for module, shares in enumerate(zip(*(each.use for each in rounds), strict=True)):
        rows += [[f"{summary.pool}.{module}", *(f"{share:.1%}" for share in shares)]]
    rows += [["largest gate", *(f"{each.largest_gate:.3f}" for each in rounds)]]
    rows += [["entropy (nats)", *(f"{each.entropy:.3f}" for each in rounds)]]
    return "\n".join([f"{summary.route}: {summary.pool} by {summary.router}", *_aligned(rows)])


def _aligned(rows: list[list[str]]) -> list[str]:
    widest = max(len(row[0]) for row in rows)
    return ["  " + row[0].ljust(widest) + "".join(cell.rjust(10) for cell in row[1:]) for row in rows]
