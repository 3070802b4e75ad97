"""What a trace says in numbers, as JSON and as tables, and which words each module of a language model is chosen for
(Kirsch et al., NeurIPS 2018, table 2). `docs/trace.md` has the schema.

Axis letters: B examples, T time, M modules, W words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import starmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.inspect.cost_text import align
from modgraph.store.stored_trace import FORMAT
from modgraph.trace import steps
from modgraph.trace.statistics import (
    coactivations,
    paths_of,
    round_of,
    shown_rounds,
    statistics_of,
    together,
    use_by_groups,
)
from modgraph.trace.steps import ACTIVE, Shares, StepUse, names_of, steps_by_task, use_by_steps, without_common
from modgraph.trace.trace import Trace
from modgraph.version import VERSION

LEAST = 5  # times that a module was chosen for a word: of rare words anything can be said
MOST = 6  # words of a module
BEFORE, BEHIND = 3, 2  # words of context
SHOWN_PATHS = 8  # in a table

Summary = Mapping[str, Any]  # what `as_json` gives, or a part of it
Words = list[dict[str, Any]]  # of a module, each as trace.json has it


def as_json(trace: Trace) -> dict[str, Any]:
    """The statistics for tools: routes by name."""
    use = use_by_steps(trace)
    by_step, _ = steps_by_task(trace, use)
    return {
        "format": FORMAT,
        "modgraph": VERSION,
        "graph": trace.graph.hash(),
        "epoch": trace.epoch,
        "step": trace.step,
        "split": trace.split,
        "examples": len(trace),
        "routes": _routes(trace, use),
        "coactivation": coactivations(trace),
        "paths": paths_of(trace),
        "tasks": {target: list(routes) for target, routes in steps.tasks_of(trace).items()},
        "by_task": steps.use_by_task(trace),
        "by_step": by_step,
        "growth": trace.growth,
    }


def _routes(trace: Trace, use: dict[str, StepUse]) -> dict[str, dict[str, Any]]:
    positions, words, found = steps.positions_of(trace), typical_words(trace), {}
    for route in trace.routes:
        name = route.name
        summary: dict[str, Any] = {
            "node": route.decision.name,
            "pool": route.pool,
            "router": str(route.decision.router.router),
            "selects": route.selects,
            "rounds": [round_of(route, at) for at in range(len(route.gates))],
            "by": use_by_groups(trace, route),
            "together": together(route),
            "training": trace.history[name].tolist() if name in trace.history else [],
            "controller": trace.entropies[name].tolist() if name in trace.entropies else [],
            **statistics_of(route),
        }
        summary |= {"positions": positions[name]} if name in positions else {}
        summary |= {"steps": use[name]} if name in use else {}
        summary |= {"words": words[name]} if name in words else {}
        found[name] = summary
    return found


def as_table(trace: Trace, summary: Summary) -> str:
    """A trace's summary to read: a table for each route, a column for each round."""
    routes, by_task = summary["routes"], summary["by_step"]
    _, shared = steps_by_task(trace, {name: each["steps"] for name, each in routes.items() if "steps" in each})
    tables = [f"{summary['examples']} examples of {summary['split']}", *starmap(_route_table, routes.items())]
    tables += _task_tables(by_task) if by_task is not None else ()
    tables += starmap(_steps_table, shared.items())
    tables += (_words_table(name, each) for name, each in routes.items() if "words" in each)
    return "\n\n".join([*tables, *map(_paths_table, summary["paths"])])


def _route_table(name: str, route: Summary) -> str:
    """What a route did round by round, and what is wrong with it."""
    pool, shown = route["pool"], shown_rounds(len(route["rounds"]))
    rounds = [route["rounds"][at] for at in shown]
    rows = [["", *(f"round {at + 1}" for at in shown)]] if len(route["rounds"]) > 1 else []
    for module, shares in enumerate(zip(*(each["use"] for each in rounds), strict=True)):
        rows += [[f"{pool}.{module}", *(f"{share:.1%}" for share in shares)]]
    rows += [["largest gate", *(f"{each['largest_gate']:.3f}" for each in rounds)]]
    rows += [["entropy (nats)", *(f"{each['entropy']:.3f}" for each in rounds)]]
    lines = [f"{name}: {pool} by {route['router']}", *_indented(rows, 8)]
    if route["dead"]:
        lines.append(f"  dead: {pool.rpartition('.')[2]}.{', '.join(map(str, route['dead']))} (never chosen)")
    if route["collapsed"]:
        spread, modules = route["entropies"]["of_use"], len(route["load"])
        lines.append(f"  collapsed: the entropy of use is {spread:.3f}, less than half of log {modules}")
    return "\n".join(lines)


def _task_tables(by_task: StepUse) -> Iterator[str]:
    rows = by_task["sub_networks"]
    names = [f"{pool}.{row['module']}{use}" for (pool, use), row in zip(names_of(rows), rows, strict=True)]
    for task, use in by_task["use"].items():
        yield _by_step(task, "sub-networks", by_task, names, use)
    shares = [[name, *(f"{share:.0%}" for share in each)] for name, each in zip(names, by_task["shares"], strict=True)]
    yield "\n".join(["share of tasks in what is taken of a sub-network", *_indented([["", *by_task["use"]], *shares])])


def _steps_table(name: str, use: StepUse) -> str:
    senders, modules = use["senders"], use["modules"]
    parts = [("", modules)] if senders is None else [("from ", senders), ("to ", modules)]
    short = without_common(part["pool"] for _, part in parts)
    names = [f"{which}{short[part['pool']]}.{module}" for which, part in parts for module in range(len(part["steps"]))]
    return _by_step(name, "modules", use, names, [steps for _, part in parts for steps in part["steps"]])


def _by_step(name: str, what: str, use: StepUse, names: Sequence[str], shares: Shares) -> str:
    measured = f"% of examples with {what} active" if use["of"] == ACTIVE else f"mean gates of {what} in %"
    rows = [[row, *(f"{100 * share:.0f}" for share in each)] for row, each in zip(names, shares, strict=True)]
    table = _indented([["", *map(str, range(len(shares[0])))], *rows])
    return "\n".join([f"{name}: {measured} by step of {use['axis']}", *table])


def _indented(rows: Sequence[Sequence[str]], least: int = 3) -> Iterator[str]:
    """Lines of a table, its columns at least so wide."""
    return (f"  {line}" for line in align(rows, least))


def typical_words(trace: Trace) -> dict[str, list[Words]]:
    """For each module of a route that decides at every place of an input of tokens, each module chosen or not, the
    words of the largest lift: p(word | module) / p(word), how often the module was chosen for it, and once what stood
    around it."""
    inputs, found = trace.graph.input_types.items(), {}
    for route in trace.routes:
        shape = route.decision.senders[:1]
        source = next((name for name, type_ in inputs if type_.dtype == "token" and type_.shape == shape), None)
        if route.selects and source is not None:
            ids_BT = trace.arrays.values[source]
            chosen_BTM: NDArray[np.bool_] = route.chosen[-1].reshape(*ids_BT.shape, -1, route.modules).any(2)
            names = trace.words.get(source) or [str(id_) for id_ in range(int(ids_BT.max()) + 1)]
            found[route.name] = [_of_module(ids_BT, chosen_BTM, module, names) for module in range(route.modules)]
    return found


def _of_module(ids_BT: NDArray[np.int64], chosen_BTM: NDArray[np.bool_], module: int, names: Sequence[str]) -> Words:
    real_BT, here_BT = np.asarray(chosen_BTM.any(-1)), np.asarray(chosen_BTM[:, :, module])
    counts_W, all_W = (np.bincount(ids_BT[places], minlength=len(names)) for places in (here_BT, real_BT))
    lift_W = (counts_W / max(1, counts_W.sum()) * all_W.sum() / np.maximum(1, all_W)).round(6)
    frequent = np.flatnonzero(counts_W >= LEAST).tolist()
    found = []
    for word in sorted(frequent, key=lambda word: (-lift_W[word], -counts_W[word], word))[:MOST]:
        example, time = np.argwhere(here_BT & (ids_BT == word))[0]
        row = [names[id_] for id_ in ids_BT[example][: real_BT[example].sum()]]
        before, behind = row[max(0, time - BEFORE) : time], row[time + 1 : time + 1 + BEHIND]
        numbers = {"word": names[word], "lift": float(lift_W[word]), "count": int(counts_W[word])}
        found.append({**numbers, "before": " ".join(before), "behind": " ".join(behind)})
    return found


def _words_table(name: str, route: Summary) -> str:
    lines = [f"{name}: typical words, p(word | module) / p(word), times chosen, once in context"]
    for module, words in enumerate(route["words"]):
        head = f"{route['pool']}.{module}"
        rows = []
        for each in words:
            context = "{before} [{word}] {behind}".format(**each).strip()
            rows.append("{word:14} {lift:6.2f} {count:6}   ".format(**each) + context)
        for row in rows or ["no word often enough"]:
            lines.append(f"  {head:{len(route['pool']) + 3}}  {row}")
            head = ""
    return "\n".join(lines)


def _paths_table(found: Summary) -> str:
    lines = [f"paths through {', '.join(found['routes'])}: {found['different']} different"]
    for path in found["paths"][:SHOWN_PATHS]:
        modules = ("+".join(map(str, each)) for each in path["modules"])
        lines.append(f"  {path['share']:6.1%}  {' → '.join(modules)}")
    return "\n".join(lines)
