"""A failing program made smaller, statement by statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import modgraph
from modgraph.diagnostics import ModgraphError
from tests.assault.programs.program import Written
from tests.assault.programs.text import Statement, Tree


def reduced(written: Written, fails: Callable[[modgraph.Program], bool]) -> str:
    """The text of the smallest program found that fails like the given one: no statement can be left out."""
    tree = written.tree
    smaller = True
    while smaller:
        smaller = False
        for holder, statement in list(_statements(tree)):
            if statement not in holder:
                continue
            at = holder.index(statement)
            kept = statement.body if statement.body is not None else []
            for instead in ([], kept) if kept else ([],):
                holder[at : at + 1] = instead
                if _still_fails(tree, fails):
                    smaller = True
                    break
                holder[at : at + len(instead)] = [statement]
    return tree.text()


def _still_fails(tree: Tree, fails: Callable[[modgraph.Program], bool]) -> bool:
    try:
        program = modgraph.loads(tree.text())
    except ModgraphError:
        return False
    return fails(program)


def _statements(tree: Tree) -> Iterator[tuple[list[Statement], Statement]]:
    """Each list of statements with each that it holds, the last first."""
    for holder in (tree.body, tree.definitions):
        yield from _in(holder)


def _in(holder: list[Statement]) -> Iterator[tuple[list[Statement], Statement]]:
    for statement in reversed(list(holder)):
        yield holder, statement
        if statement.body is not None:
            yield from _in(statement.body)
