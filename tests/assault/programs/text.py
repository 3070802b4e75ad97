"""A program as a tree of statements, each on a line of its own, and its pruning: what modgraph refuses is taken out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import modgraph
from modgraph.diagnostics import ModgraphError

ROUNDS = 12  # of pruning: each takes out every statement that is refused at that time


@dataclass(eq=False)
class Statement:
    """A line; with a body, also the lines of that and a last line."""

    text: str
    body: list[Statement] | None = None
    tail: str = "}"

    def lines(self, depth: int = 0) -> Iterator[tuple[str, Statement]]:
        """The lines of text, each with the statement that it belongs to."""
        yield "  " * depth + self.text, self
        if self.body is not None:
            for statement in self.body:
                yield from statement.lines(depth + 1)
            yield "  " * depth + self.tail, self


@dataclass
class Tree:
    """The definitions of a program, the parameters of its model and its statements."""

    name: str = "m"
    definitions: list[Statement] = field(default_factory=list)
    parameters: list[str] = field(default_factory=list)
    body: list[Statement] = field(default_factory=list)

    def text(self) -> str:
        return "".join(f"{line}\n" for line, _ in self._lines(()))

    def _lines(self, more: tuple[Statement, ...]) -> list[tuple[str, Statement]]:
        head = f"model {self.name}({', '.join(self.parameters)}) {{"
        model = Statement(head, [*self.body, *more])
        return [each for statement in (*self.definitions, model) for each in statement.lines()]

    def pruned(self, more: tuple[Statement, ...]) -> modgraph.Program | None:
        """The program with some more statements; what modgraph refuses of it is taken out, of the tree too."""
        for _ in range(ROUNDS):
            lines = self._lines(more)
            try:
                return modgraph.loads("".join(f"{line}\n" for line, _ in lines))
            except ModgraphError as error:
                refused = _refused(error, lines)
            if not refused:
                return None
            more = tuple(each for each in more if id(each) not in refused)
            _drop(self.body, refused)
            _drop(self.definitions, refused)
        return None


def _refused(error: ModgraphError, lines: list[tuple[str, Statement]]) -> set[int]:
    """The statements that an error speaks of, by identity."""
    found = set()
    for diagnostic in error.diagnostics:
        if diagnostic.severity == "error" and diagnostic.span is not None and diagnostic.span.source.name == "<string>":
            line, _ = diagnostic.span.source.position(diagnostic.span.start)
            if line <= len(lines):
                found.add(id(lines[line - 1][1]))
    return found


def _drop(statements: list[Statement], refused: set[int]) -> None:
    """Take statements out of a list, and out of the bodies in it."""
    statements[:] = [each for each in statements if id(each) not in refused]
    for each in statements:
        if each.body is not None:
            _drop(each.body, refused)
