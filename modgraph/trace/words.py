"""Which words each module of a language model is chosen for (Kirsch et al., NeurIPS 2018, table 2).

Axis letters: B examples, T time, M modules, W words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modgraph.trace.routes import RouteTrace
from modgraph.trace.trace import Trace

LEAST = 5  # times that a module was chosen for a word: of rare words anything can be said
MOST = 6  # words of a module
BEFORE, BEHIND = 3, 2  # words of context


@dataclass(frozen=True)
class TypicalWord:
    """A word, p(word | module) / p(word), how often the module was chosen for it, and once what stood around it."""

    word: str
    lift: float
    count: int
    before: str
    behind: str


def typical_words(trace: Trace) -> dict[str, list[list[TypicalWord]]]:
    """For each module of a route that decides at every place of an input of tokens, the words of the largest lift."""
    found = {}
    for route in trace.routes:
        source = _source(trace, route)
        if source is not None:
            ids_BT = trace.arrays.values[source]
            chosen_BTM: NDArray[np.bool_] = route.chosen[-1].reshape(*ids_BT.shape, -1, route.modules).any(2)
            names = trace.words.get(source) or [str(id_) for id_ in range(int(ids_BT.max()) + 1)]
            found[route.name] = [_of_module(ids_BT, chosen_BTM, module, names) for module in range(route.modules)]
    return found


def _source(trace: Trace, route: RouteTrace) -> str | None:
    """The input of tokens whose places are those of a route's decisions, if each module is chosen or not."""
    if not route.selects:
        return None
    positions = route.decision.senders[0]
    inputs = trace.graph.input_types.items()
    return next((name for name, type_ in inputs if type_.dtype == "token" and type_.shape == (positions,)), None)


def _of_module(
    ids_BT: NDArray[np.int64], chosen_BTM: NDArray[np.bool_], module: int, names: Sequence[str]
) -> list[TypicalWord]:
    real_BT, here_BT = np.asarray(chosen_BTM.any(-1)), np.asarray(chosen_BTM[:, :, module])
    counts_W = np.bincount(ids_BT[here_BT], minlength=len(names))
    all_W = np.bincount(ids_BT[real_BT], minlength=len(names))
    lift_W = (counts_W / max(1, counts_W.sum()) * all_W.sum() / np.maximum(1, all_W)).round(6)
    frequent = np.flatnonzero(counts_W >= LEAST)
    best = sorted(frequent.tolist(), key=lambda word: (-lift_W[word], -counts_W[word], word))[:MOST]
    return [
        TypicalWord(
            names[word], float(lift_W[word]), int(counts_W[word]), *_context(ids_BT, here_BT, real_BT, word, names)
        )
        for word in best
    ]


def _context(
    ids_BT: NDArray[np.int64], here_BT: NDArray[np.bool_], real_BT: NDArray[np.bool_], word: int, names: Sequence[str]
) -> tuple[str, str]:
    """What stands before and behind a word where it first counts."""
    example, time = np.argwhere(here_BT & (ids_BT == word))[0]
    row = ids_BT[example][: real_BT[example].sum()]
    before, behind = row[max(0, time - BEFORE) : time], row[time + 1 : time + 1 + BEHIND]
    return " ".join(names[id_] for id_ in before), " ".join(names[id_] for id_ in behind)


def words_tables(trace: Trace) -> list[str]:
    """The words to read: a text for each route."""
    pools = {route.name: route.pool for route in trace.routes}
    return [_table(name, pools[name], words) for name, words in typical_words(trace).items()]


def _table(route: str, pool: str, words: list[list[TypicalWord]]) -> str:
    lines = [f"{route}: typical words, p(word | module) / p(word), times chosen, once in context"]
    for module, of_module in enumerate(words):
        head = f"{pool}.{module}"
        for shown in map(_line, of_module) if of_module else ["no word often enough"]:
            lines.append(f"  {head:{len(pool) + 3}}  {shown}")
            head = ""
    return "\n".join(lines)


def _line(word: TypicalWord) -> str:
    context = f"{word.before} [{word.word}] {word.behind}".strip()
    return f"{word.word:14} {word.lift:6.2f} {word.count:6}   {context}"
