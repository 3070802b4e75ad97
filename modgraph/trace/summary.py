"""The summary of a trace, as JSON and as tables, and the words that each module of a language model is chosen for
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
    compute_coactivations,
    compute_statistics,
    find_paths,
    pair_shares,
    pick_rounds,
    round_of,
    use_by_groups,
)
from modgraph.trace.steps import ACTIVE, Shares, StepUse, names_of, steps_by_task, strip_common_prefix, use_by_steps
from modgraph.trace.trace import Trace
from modgraph.version import VERSION

LEAST = 5  # the least times that a module was chosen for a word: rare words are noise
MOST = 6  # words of a module
BEFORE, BEHIND = 3, 2  # words of context
MAX_PATHS = 8  # in a table

Summary = Mapping[str, Any]  # the result of `as_json`, or a part of it
Words = list[dict[str, Any]]  # of a module, each as in trace.json


def as_json(trace: Trace) -> dict[str, Any]:
    """Return the statistics for tools: routes by name."""
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
        "coactivation": compute_coactivations(trace),
        "paths": find_paths(trace),
        "tasks": {target: list(routes) for target, routes in steps.tasks_of(trace).items()},
        "by_task": steps.use_by_task(trace),
        "by_step": by_step,
        "growth": trace.growth,
    }


def _routes(trace: Trace, use: dict[str, StepUse]) -> dict[str, dict[str, Any]]:
    positions, words, found = steps.positions_of(trace), find_typical_words(trace), {}
    for route in trace.routes:
        name = route.name
        summary: dict[str, Any] = {
            "node": route.decision.name,
            "pool": route.pool,
            "router": str(route.decision.router.router),
            "selects": route.has_choice,
            "rounds": [round_of(route, at) for at in range(len(route.gates))],
            "by": use_by_groups(trace, route),
            "together": pair_shares(route),
            "training": trace.history[name].tolist() if name in trace.history else [],
            "controller": trace.entropies[name].tolist() if name in trace.entropies else [],
            **compute_statistics(route),
        }
        summary |= {"positions": positions[name]} if name in positions else {}
        summary |= {"steps": use[name]} if name in use else {}
        summary |= {"words": words[name]} if name in words else {}
        found[name] = summary
    return found


def as_table(trace: Trace, summary: Summary) -> str:
    """Return the summary as text: a table for each route, a column for each round."""
    routes, by_task = summary["routes"], summary["by_step"]
    _, shared = steps_by_task(trace, {name: each["steps"] for name, each in routes.items() if "steps" in each})
    tables = [f"{summary['examples']} examples of {summary['split']}", *starmap(_route_table, routes.items())]
    tables += _task_tables(by_task) if by_task is not None else ()
    tables += starmap(_steps_table, shared.items())
    tables += (_words_table(name, each) for name, each in routes.items() if "words" in each)
    return "\n\n".join([*tables, *map(_paths_table, summary["paths"])])


def _route_table(name: str, route: Summary) -> str:
    """Return the table of a route, round by round, and its problems."""
    pool, rounds_to_print = route["pool"], pick_rounds(len(route["rounds"]))
    rounds = [route["rounds"][at] for at in rounds_to_print]
    rows = [["", *(f"round {at + 1}" for at in rounds_to_print)]] if len(route["rounds"]) > 1 else []
    for module, shares in enumerate(zip(*(each["use"] for each in rounds), strict=True)):
        rows += [[f"{pool}.{module}", *(f"{share:.1%}" for share in shares)]]
    rows += [["largest gate", *(f"{each['largest_gate']:.3f}" for each in rounds)]]
    rows += [["entropy (nats)", *(f"{each['entropy']:.3f}" for each in rounds)]]
    if route["modules_per_token"] is not None:
        rows += [["modules per token", *(f"{each['modules_per_token']:.2f}" for each in rounds)]]
    lines = [f"{name}: {pool} by {route['router']}", *_indent(rows, 8)]
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
        yield _format_steps(task, "sub-networks", by_task, names, use)
    shares = [[name, *(f"{share:.0%}" for share in each)] for name, each in zip(names, by_task["shares"], strict=True)]
    yield "\n".join(["share of tasks in what is taken of a sub-network", *_indent([["", *by_task["use"]], *shares])])


def _steps_table(name: str, use: StepUse) -> str:
    sources, modules = use["senders"], use["modules"]
    parts = [("", modules)] if sources is None else [("from ", sources), ("to ", modules)]
    short = strip_common_prefix(part["pool"] for _, part in parts)
    names = [f"{which}{short[part['pool']]}.{module}" for which, part in parts for module in range(len(part["steps"]))]
    return _format_steps(name, "modules", use, names, [steps for _, part in parts for steps in part["steps"]])


def _format_steps(name: str, what: str, use: StepUse, names: Sequence[str], shares: Shares) -> str:
    measured = f"% of examples with {what} active" if use["of"] == ACTIVE else f"mean gates of {what} in %"
    rows = [[row, *(f"{100 * share:.0f}" for share in each)] for row, each in zip(names, shares, strict=True)]
    table = _indent([["", *map(str, range(len(shares[0])))], *rows])
    return "\n".join([f"{name}: {measured} by step of {use['axis']}", *table])


def _indent(rows: Sequence[Sequence[str]], least: int = 3) -> Iterator[str]:
    """Return the lines of a table, each column at least this wide."""
    return (f"  {line}" for line in align(rows, least))


def find_typical_words(trace: Trace) -> dict[str, list[Words]]:
    """Return the words with the largest lift for each module of a route that makes a choice at every place of an input
    of tokens: p(word | module) / p(word), how often the module was chosen for the word, and one context."""
    inputs, found = trace.graph.input_types.items(), {}
    for route in trace.routes:
        shape = route.decision.token_axes[:1]
        source = next((name for name, type_ in inputs if type_.dtype == "token" and type_.shape == shape), None)
        if route.has_choice and source is not None:
            ids_BT = trace.arrays.values[source]
            choice_BTM: NDArray[np.bool_] = route.choice[-1].reshape(*ids_BT.shape, -1, route.modules).any(2)
            names = trace.words.get(source) or [str(id_) for id_ in range(int(ids_BT.max()) + 1)]
            found[route.name] = [_find_words(ids_BT, choice_BTM, module, names) for module in range(route.modules)]
    return found


def _find_words(ids_BT: NDArray[np.int64], choice_BTM: NDArray[np.bool_], module: int, names: Sequence[str]) -> Words:
    mask_BT, here_BT = np.asarray(choice_BTM.any(-1)), np.asarray(choice_BTM[:, :, module])
    counts_W, all_W = (np.bincount(ids_BT[places], minlength=len(names)) for places in (here_BT, mask_BT))
    lift_W = (counts_W / max(1, counts_W.sum()) * all_W.sum() / np.maximum(1, all_W)).round(6)
    frequent = np.flatnonzero(counts_W >= LEAST).tolist()
    found = []
    for word in sorted(frequent, key=lambda word: (-lift_W[word], -counts_W[word], word))[:MOST]:
        example, time = np.argwhere(here_BT & (ids_BT == word))[0]
        row = [names[id_] for id_ in ids_BT[example][: mask_BT[example].sum()]]
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
    for path in found["paths"][:MAX_PATHS]:
        modules = ("+".join(map(str, each)) for each in path["modules"])
        lines.append(f"  {path['share']:6.1%}  {' → '.join(modules)}")
    return "\n".join(lines)
