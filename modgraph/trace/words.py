"""Which words each module of a language model is chosen for (Kirsch et al., NeurIPS 2018, table 2).

Axis letters: B examples, T time, M modules, W words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.trace.trace import Trace

LEAST = 5  # times that a module was chosen for a word: of rare words anything can be said
MOST = 6  # words of a module
BEFORE, BEHIND = 3, 2  # words of context


Words = list[dict[str, Any]]  # of a module, each as trace.json has it


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


def words_tables(trace: Trace) -> list[str]:
    """The words to read: a text for each route."""
    pools, tables = {route.name: route.pool for route in trace.routes}, []
    for name, modules in typical_words(trace).items():
        lines = [f"{name}: typical words, p(word | module) / p(word), times chosen, once in context"]
        for module, words in enumerate(modules):
            head = f"{pools[name]}.{module}"
            rows = []
            for each in words:
                context = "{before} [{word}] {behind}".format(**each).strip()
                rows.append("{word:14} {lift:6.2f} {count:6}   ".format(**each) + context)
            for row in rows or ["no word often enough"]:
                lines.append(f"  {head:{len(pools[name]) + 3}}  {row}")
                head = ""
        tables.append("\n".join(lines))
    return tables
