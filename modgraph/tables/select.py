"""Selects and sorts runs by conditions on their keys."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from modgraph.diagnostics import ModgraphError, closest, did_you_mean
from modgraph.elaboration import read_value
from modgraph.tables import errors
from modgraph.tables.facts import DATA, GRAPH, PRUNED, REASON, TRIAL, RunFacts
from modgraph.tables.numbers import order_of

CONDITION = re.compile(r"\s*(?P<key>[^=<>!]+?)\s*(?P<sign>!=|<=|>=|==?|<|>)\s*(?P<value>.*?)\s*", re.DOTALL)
ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
RARE = (REASON, GRAPH, DATA, TRIAL, PRUNED)  # keys that a suggestion need not name
MOST_NAMED = 3
Conditions = str | Mapping[str, Any] | Sequence[str]


def select(runs: Sequence[RunFacts], where: Conditions) -> list[RunFacts]:
    """Return the runs that meet every condition: texts such as `experts=4` and `test.accuracy>0.9`, or values by key.
    Raises `ModgraphError` for what is no condition, and for a key that no run has."""
    if isinstance(where, Mapping):
        check_keys(runs, where)
        return [run for run in runs if all(is_equal(run.find(key), value) for key, value in where.items())]
    tests = [_parse(text, runs) for text in ((where,) if isinstance(where, str) else where)]
    return [run for run in runs if all(test(run) for test in tests)]


def sort(runs: Sequence[RunFacts], key: str) -> list[RunFacts]:
    """Sort runs by a key, with `-KEY` from the largest; those without it come last. Raises `ModgraphError` for a key
    that no run has."""
    name, down = key.removeprefix("-"), key.startswith("-")
    check_keys(runs, [name])
    known = [run for run in runs if run.find(name) is not None]
    ordered = sorted(known, key=lambda run: order_of(run.find(name)), reverse=down)
    return [*ordered, *(run for run in runs if run.find(name) is None)]


def check_keys(runs: Sequence[RunFacts], keys: Iterable[str], place: str = "") -> None:
    """Raises `ModgraphError` for keys that no run has, with what each may mean."""
    known = dict.fromkeys(name for run in runs for name in run.list_keys())
    if runs:
        refuse_unknown(keys, known, place)


def refuse_unknown(keys: Iterable[str], known: Iterable[str], place: str = "") -> None:
    """Raises `ModgraphError` for keys that are not known, with what each may mean."""
    names = list(known)
    unknown = [key for key in dict.fromkeys(keys) if key not in names]
    if unknown:
        raise ModgraphError(
            errors.UnknownKey(key=key, place=place, suggestion=suggest_key(key, names)) for key in unknown
        )


def suggest_key(key: str, known: Sequence[str]) -> str:
    """Suggest a key for an unknown one: one that ends with it, `test.accuracy` for `accuracy`, or a similar one."""
    if closest(key, known) is None:
        ends = [name.rpartition(".")[2] for name in known]
        meant = closest(key.rpartition(".")[2], [end for end in ends if len(end) > 1])
        longer = [name for name, end in zip(known, ends, strict=True) if end == meant or name.startswith(key)]
        if longer:
            return "did you mean {}?".format(" or ".join(f'"{name}"' for name in longer[:MOST_NAMED]))
    return did_you_mean(key, [name for name in known if name not in RARE], "they have: {known}")


def is_equal(found: Any, value: Any) -> bool:
    """Whether a key has a value; 1 equals 1.0, and true equals no number."""
    if isinstance(found, bool) or isinstance(value, bool):
        return found is value
    if isinstance(found, list) and isinstance(value, list | tuple):
        return len(found) == len(value) and all(map(is_equal, found, value))
    return bool(found == value)


def _parse(text: str, runs: Sequence[RunFacts]) -> Callable[[RunFacts], bool]:
    """Parse one condition. Raises `ModgraphError`."""
    match = CONDITION.fullmatch(text)
    if match is None or not match["value"]:
        raise ModgraphError([errors.BadCondition(given=text)])
    key, sign, written = match["key"], match["sign"], match["value"]
    check_keys(runs, [key])
    value = None if written == "null" else read_value(written)
    if sign in ORDERS:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ModgraphError([errors.NotANumber(given=text, key=key, sign=sign, value=written)])
        compare = ORDERS[sign]

        def is_ordered(run: RunFacts) -> bool:
            found = run.find(key)
            return isinstance(found, int | float) and not isinstance(found, bool) and compare(found, value)

        return is_ordered
    equal = sign != "!="
    texts = {written, str(value)}
    return lambda run: (is_equal(found := run.find(key), value) or (isinstance(found, str) and found in texts)) == equal
