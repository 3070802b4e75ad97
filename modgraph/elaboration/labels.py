"""What users know the decisions of routers by: the shortest of what the author wrote that names one alone.

A use of the pool `expert` in the round `layer.0` is called `layer.0.expert`. Where the round has others of this word,
the name that the statement binds tells them apart (`layer.0.x.expert`), and if need be its number
(`layer.0.x2.expert`). Calls around a use are shortened likewise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from modgraph.elaboration.scope import join
from modgraph.ir import Graph


def label_decisions(graph: Graph, shorter: Mapping[str, tuple[str, str]]) -> None:
    """Give the decisions of a graph that are recorded their labels; `shorter` says what is tried before a name."""
    decisions = [each for each in graph.decisions() if each.declared]
    around: dict[str, str] = {}  # by the path of a use or of a call, that of the call around it
    for each in decisions:
        calls = [] if each.node.within is None else [call.path for call in each.node.within.chain()]
        if calls[:1] == [each.name]:  # that of the router's text
            calls = calls[1:]
        for inner, outer in pairwise([each.name, *calls, ""]):
            around.setdefault(inner, outer)
    short = _shorten(around, shorter)
    labels = {each.name: _label(each.name, around, short) for each in decisions}
    taken = {*graph.outputs, *graph.input_types, *graph.target_types}
    records = {each.name: [record.name for record in each.declared] for each in decisions}
    unclear = labels
    while unclear:  # a whole name where a label would name two things
        count = Counter(labels.values())
        unclear = {
            name: name
            for name, label in labels.items()
            if label != name and (count[label] > 1 or any(f"{label}.{record}" in taken for record in records[name]))
        }
        labels |= unclear
    for decision in decisions:
        if labels[decision.name] != decision.name:
            decision.part.graph.replace(replace(decision.node, label=labels[decision.name]))


def _shorten(around: Mapping[str, str], shorter: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """The shortest name of each path that no other in the same call has."""
    found: dict[str, str] = {}
    for tried in (0, 1):
        names = {path: shorter.get(path, (path, path))[tried] for path in around if path not in found}
        count = Counter((around[path], name) for path, name in names.items())
        found |= {path: name for path, name in names.items() if count[around[path], name] == 1}
    return {path: path for path in around} | found


def _label(path: str, around: Mapping[str, str], short: Mapping[str, str]) -> str:
    """A name below the label of the call around it."""
    outer, name = around[path], short[path]
    if not outer:
        return name
    below = f"{outer}."
    return join(_label(outer, around, short), name.removeprefix(below)) if name.startswith(below) else path
