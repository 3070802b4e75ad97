"""The lines of a function: one for each value that is read more than once or that the author named."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from modgraph.backends.torch.source.formulas import Expression, name
from modgraph.backends.torch.source.text import free, number_names, prose
from modgraph.ir import Result

DEEP = 60  # the depth above which an expression gets a variable


class Lines:
    """The lines so far, and the variables of values. `word` returns the author's name of a value."""

    def __init__(self, word: Callable[[Result], str]) -> None:
        self.word = word
        self.taken = set[str]()
        self.values: dict[Result, Expression] = {}
        self.left: Counter[Result] = Counter()  # the remaining reads of each value
        self.owners: dict[str, list[Result]] = {}  # the values of each variable
        self.waiting: dict[Result, None] = {}  # values that no line contains yet
        self.lines: list[str] = []
        self.masks: dict[tuple[object, ...], str] = {}
        self.words: dict[Result, str] = {}  # the variables at the start of a loop

    def fresh_name(self, called: str) -> str:
        """Reserve a new name like `called`."""
        called = free(called, self.taken)
        self.taken.add(called)
        return called

    def pending(self) -> set[str]:
        """The variables in values that no line contains yet."""
        return {each.id for one in self.waiting for each in ast.walk(self.values[one]) if isinstance(each, ast.Name)}

    def name_for(self, result: Result) -> str:
        """A variable for a value; it may reuse one whose value is dead."""
        pending = self.pending()
        for called in number_names(free(self.words.get(result) or self.word(result), ())):
            old = self.owners.get(called, [])
            is_free = old and all(self.left[each] <= 0 for each in old) and called not in pending
            if called not in self.taken or is_free:
                break
        self.owners[called] = [result]
        self.taken.add(called)
        return called

    def give(self, result: Result, called: str) -> None:
        """Assign a variable to a value."""
        self.values[result] = name(called)
        self.owners.setdefault(called, []).append(result)
        self.taken.add(called)

    def set(self, result: Result, said: Expression, shape: str, stays: bool, deep: int = DEEP) -> None:
        """Write a value in a line, unless it is short, read once and `stays` where it is read."""
        if not self.left[result] and stays:
            return
        if isinstance(said, ast.Name) and said.id in self.owners:
            self.give(result, said.id)
        elif isinstance(said, ast.Attribute | ast.Constant) or (
            self.left[result] == 1 and stays and len(ast.unparse(said)) <= deep
        ):
            self.wait(result, said)
        else:
            self.assign(result, said, shape)

    def wait(self, result: Result, said: Expression) -> None:
        """Inline a value where it is read."""
        self.values[result] = said
        self.waiting[result] = None

    def assign(self, result: Result, said: Expression, shape: str = "") -> None:
        """Write an assignment of a value, with its shape as a comment."""
        called = self.name_for(result)
        self.values[result] = name(called)
        self.line(f"{called} = {ast.unparse(said)}" + (f"  # {prose(shape)}" if shape else ""))

    def set_all(self, results: Sequence[Result], said: Expression) -> None:
        """Write an assignment of several values; dead ones go to `_`."""
        names = [self.name_for(each) if self.left[each] else "_" for each in results]
        for each, called in zip(results, names, strict=True):
            self.values[each] = name(called)
        self.line(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {ast.unparse(said)}")

    def read(self, result: Result) -> Expression:
        """The expression for a value; counts as a read."""
        self.left[result] -= 1
        if self.left[result] <= 0:
            self.waiting.pop(result, None)
        return self.values[result]

    def variable(self, result: Result) -> str:
        """The variable that holds a value; does not count as a read."""
        if not isinstance(self.values[result], ast.Name):
            self.waiting.pop(result, None)
            self.assign(result, self.values[result])
        return ast.unparse(self.values[result])

    def bind(self, said: Expression, word: str) -> Expression:
        """Assign an expression that occurs several times to a variable."""
        if isinstance(said, ast.Name):
            return said
        called = self.fresh_name(word)
        self.line(f"{called} = {ast.unparse(said)}")
        return name(called)

    def line(self, statement: str) -> None:
        self.lines.append(statement)

    @contextmanager
    def indent(self, head: str) -> Iterator[None]:
        """Indent the lines of a `with` block under a head."""
        at = len(self.lines)
        yield
        if len(self.lines) > at:
            self.lines[at:] = [head, *(f"    {line}" if line else "" for line in self.lines[at:])]

    @contextmanager
    def guard(self, condition: str) -> Iterator[None]:
        """Put the lines of a `with` block under an `if`; live values are None in its `else`, and masks are dropped."""
        masks, known = dict(self.masks), set(self.values)
        with self.indent(f"if {condition}:"):
            yield
            read = [each for each in self.values if each not in known and self.left[each] > 0]
            names = dict.fromkeys(self.variable(each) for each in read)
        if names:
            self.line("else:")
            self.line(f"    {' = '.join([*names, 'None'])}")
        self.masks = masks
