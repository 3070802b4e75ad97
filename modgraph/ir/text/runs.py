"""Rounds that follow each other and are the same but for their keys: one line of text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from modgraph.ir.graph import Graph
from modgraph.ir.node import Node, Result
from modgraph.ir.program.program import CallNode

KEYS = re.compile(r"([^/\[]+)\[([0-9.,]+)\]/(.*)", re.S)
VALUES = re.compile(r"(.*)/\{(.*)\}", re.S)
MOST_ROUNDS = 100_000  # in one reference
BEFORE = "[-1]"  # behind the name of a loop: the round before


@dataclass(frozen=True)
class Run:
    """Rounds of one loop, by what they have in common: `first` is one of them, and `last` is the key of the last."""

    loop: str
    first: CallNode
    last: int
    operands: tuple[str, ...]
    names: tuple[str, ...]


def reference(graph: Graph, result: Result) -> str:
    """A value of a body in words: `x2.add`, its second result `x2.split:1`, that of a call `blocks.8/x2.add`."""
    node = graph[result.node]
    if isinstance(node, CallNode):
        return f"{node.name}/{reference(node.definition.graph, node.definition.results[result.index])}"
    return str(result)


def runs_of(graph: Graph) -> Iterator[Node | Run]:
    """The nodes of a body, in order; rounds that follow each other as one."""
    pending: Run | None = None
    for node in graph:
        here = _round(node, graph)
        if pending is not None and here is not None and _follows(here, pending):
            pending = Run(pending.loop, pending.first, here.last, here.operands, here.names)
            continue
        if pending is not None:
            yield pending if pending.last != pending.first.key else pending.first
        pending = here
        if here is None:
            yield node
    if pending is not None:
        yield pending if pending.last != pending.first.key else pending.first


def fold(references: Sequence[str]) -> list[str]:
    """References, with one for those that follow each other of one value in several rounds, `blocks[0..4]/x.add` and
    `blocks[8,10]/x.add`, or of several values of one call, `x.ffn/{y.add, z.relu}`."""
    found: list[str] = []
    for (loop, rest), same in groupby(references, _of_round):
        texts = [*same]
        keys = [*map(_key_of, texts)] if rest else []
        rising = len(keys) > 1 and all(one < other for one, other in pairwise(keys))
        found += [f"{loop}[{_say_keys(keys)}]/{rest}"] if rising else texts
    folded: list[str] = []
    for call, same in groupby(found, _call_of):
        texts = [*same]
        values = ", ".join(text.rpartition("/")[2] for text in texts)
        folded += [f"{call}/{{{values}}}"] if call and len(texts) > 1 else texts
    return folded


def unfold(text: str) -> list[str]:
    """The references that one stands for. Raises `ValueError` for one that names too many rounds."""
    if match := VALUES.fullmatch(text):
        return [each for value in match[2].split(",") for each in unfold(f"{match[1]}/{value.strip()}")]
    if match := KEYS.fullmatch(text):
        return [f"{match[1]}.{key}/{match[3]}" for key in _keys_of(match[2])]
    return [text]


def _say_keys(keys: list[int]) -> str:
    """`0..4` for keys that follow each other, else `8,10`."""
    follow = keys == [*range(keys[0], keys[0] + len(keys))]
    return f"{keys[0]}..{keys[-1] + 1}" if follow and len(keys) > 2 else ",".join(map(str, keys))


def _keys_of(text: str) -> Sequence[int]:
    first, dots, last = text.partition("..")
    if not dots:
        return [*map(int, text.split(","))]
    if not 0 <= int(last) - int(first) <= MOST_ROUNDS:
        raise ValueError(f"{text} are too many rounds")
    return range(int(first), int(last))


def _of_round(text: str) -> tuple[str, str]:
    """The loop and the value of a reference to a value of a round; of another itself and nothing."""
    call, _, rest = text.partition("/")
    loop, _, key = call.rpartition(".")
    return (loop, rest) if rest and loop and key.isdecimal() else (text, "")


def _call_of(text: str) -> str:
    return text.rpartition("/")[0]


def _key_of(text: str) -> int:
    return int(text.partition("/")[0].rpartition(".")[2])


def _round(node: Node, graph: Graph) -> Run | None:
    """A round by itself, if the one before and the one after would be called by the keys next to its own."""
    if not isinstance(node, CallNode) or not isinstance(node.key, int) or node.weights:
        return None
    loop, _, key = node.name.rpartition(".")
    if not loop or key != str(node.key):
        return None
    before = f"{loop}.{node.key - 1}"
    operands = (reference(graph, each) for each in graph.inputs(node.name).values())
    return Run(
        loop,
        node,
        node.key,
        tuple(_shifted(each, before, f"{loop}{BEFORE}", "/") for each in operands),
        tuple(_shifted(each, before, f"{loop}{BEFORE}", ".") for each in node.names),
    )


def _shifted(text: str, before: str, shown: str, mark: str) -> str:
    return shown + text[len(before) :] if text.startswith(before + mark) else text


def _follows(here: Run, run: Run) -> bool:
    same = (here.loop, here.first.definition) == (run.loop, run.first.definition)
    return same and here.last == run.last + 1 and (here.operands, here.names) == (run.operands, run.names)
