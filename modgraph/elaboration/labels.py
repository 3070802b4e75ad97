"""What users know the decisions of routers by: the shortest of what the author wrote that names one alone.

A use of the pool `expert` in the round `layer.0` is called `layer.0.expert`. Where the round has others of this word,
the name that the statement binds tells them apart (`layer.0.x.expert`), and if need be its number
(`layer.0.x2.expert`). Calls around a use are shortened likewise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

from modgraph.elaboration.scope import join
from modgraph.ir import Call, Decision, Graph

Shorter = Mapping[str, tuple[str, str]]  # by a name, what is tried before it


def label_decisions(graph: Graph, shorter: Shorter) -> None:
    """Give the decisions of a graph that are recorded their labels."""
    decisions = [each for each in graph.decisions() if each.declared]
    around: dict[str, str] = {}  # by the path of a use or of a call, that of the call around it
    for each in decisions:
        calls = _calls_around(each)
        paths = [each.name, *(call.path for call in calls), ""]
        for inner, outer in pairwise(paths):
            around.setdefault(inner, outer)
    short = _shortest(around, shorter)
    labels = {each.name: _label(each.name, around, short) for each in decisions}
    for decision, label in zip(decisions, _unique(decisions, labels, graph), strict=True):
        if label != decision.name:
            decision.part.graph.replace(replace(decision.node, label=label))


def _calls_around(decision: Decision) -> list[Call]:
    """The calls that a use stands in, from the inside: not that of the router's text."""
    calls = [] if decision.node.within is None else [*decision.node.within.chain()]
    return calls[1:] if calls and calls[0].path == decision.name else calls


def _shortest(around: Mapping[str, str], shorter: Shorter) -> dict[str, str]:
    """The shortest name of each path that no other in the same call has."""
    found: dict[str, str] = {}
    left = [*around]
    for tried in (0, 1):
        names = {path: shorter.get(path, (path, path))[tried] for path in left}
        count = Counter((around[path], name) for path, name in names.items())
        found |= {path: name for path, name in names.items() if count[around[path], name] == 1}
        left = [path for path in left if path not in found]
    return found | {path: path for path in left}


def _label(path: str, around: Mapping[str, str], short: Mapping[str, str]) -> str:
    """A name below the label of the call around it."""
    if not path:
        return ""
    outer, name = around[path], short[path]
    if not outer:
        return name
    below = f"{outer}."
    return join(_label(outer, around, short), name.removeprefix(below)) if name.startswith(below) else path


def _unique(decisions: Iterable[Decision], labels: dict[str, str], graph: Graph) -> list[str]:
    """The labels, whole names where these would name two things."""
    taken = {*graph.outputs, *graph.input_types, *graph.target_types}
    records = {each.name: [record.name for record in each.declared] for each in decisions}
    while True:
        count = Counter(labels.values())
        unclear = [
            name
            for name, label in labels.items()
            if label != name and (count[label] > 1 or any(f"{label}.{record}" in taken for record in records[name]))
        ]
        if not unclear:
            return [*labels.values()]
        labels |= {name: name for name in unclear}
