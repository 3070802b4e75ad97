"""The lines of a function: a line for each value that is read more than once, or that the author named."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from modgraph.backends.torch.source.formulas import Expression, Value, name, text
from modgraph.backends.torch.source.names import free, numbered
from modgraph.backends.torch.source.text import prose
from modgraph.ir import Result
from modgraph.types import TensorType

DEEP = 60  # an expression that is longer has a name of its own
LONGEST = 200  # unless it is returned


class Lines:
    """The lines so far, and what values are called in them. `word` says what the author calls a value, `outer` are the
    axes before an example's own."""

    def __init__(self, word: Callable[[Result], str], outer: str = "B", taken: Iterable[str] = ()) -> None:
        self.word, self.outer = word, outer
        self.taken = set(taken)
        self.values: dict[Result, Expression] = {}
        self.left: Counter[Result] = Counter()  # how often each value is still to be read
        self.owners: dict[str, list[Result]] = {}  # the values that each variable holds
        self.waiting: list[Result] = []  # values that stand in no line yet
        self.lines: list[str] = []
        self.masks: dict[tuple[object, ...], str] = {}
        self.words: dict[Result, str] = {}  # what values are called that a loop begins with

    # ------------------------------------------------------------ names

    def named(self, called: str) -> str:
        """A name that nothing else has from here on."""
        called = free(called, self.taken)
        self.taken.add(called)
        return called

    def unsaid(self) -> set[str]:
        """The variables in values that stand in no line yet."""
        return {each.id for one in self.waiting for each in ast.walk(self.values[one]) if isinstance(each, ast.Name)}

    def name_for(self, *results: Result) -> str:
        """A variable for a value, perhaps one whose value nothing reads any more."""
        waiting = self.unsaid()
        best = free(self.words.get(results[0]) or self.word(results[0]), ())
        for called in numbered(best):
            old = self.owners.get(called, [])
            is_free = old and all(self.left[each] <= 0 for each in old) and called not in waiting
            if called not in self.taken or is_free:
                break
        self.owners[called] = [*results]
        self.taken.add(called)
        return called

    def give(self, result: Result, called: str) -> None:
        """A value under a name, which it keeps as long as something reads it."""
        self.values[result] = name(called)
        self.owners.setdefault(called, []).append(result)
        self.taken.add(called)

    # ------------------------------------------------------------ values

    def set(self, result: Result, said: Expression, shape: str, stays: bool, deep: int = DEEP) -> None:
        """A value: in a line, unless it is short, read once and `stays` where it is read."""
        if not self.left[result] and stays:
            return
        if isinstance(said, ast.Name) and said.id in self.owners:
            self.give(result, said.id)
        elif isinstance(said, ast.Attribute | ast.Constant) or (
            self.left[result] == 1 and stays and len(ast.unparse(said)) <= deep
        ):
            self.values[result] = said
            self.waiting.append(result)
        else:
            self.assign(result, said, shape)

    def assign(self, result: Result, said: Expression, shape: str = "") -> None:
        called = self.name_for(result)
        self.values[result] = name(called)
        self.line(f"{called} = {ast.unparse(said)}", shape)

    def set_all(self, results: Sequence[Result], said: Expression, first: bool = True) -> None:
        """Several values that are computed at once; those that nothing reads have no name."""
        names = [self.name_for(each) if self.left[each] else "_" for each in results]
        for each, called in zip(results, names, strict=True):
            self.values[each] = name(called)
        self.line(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {ast.unparse(said)}")

    def read(self, result: Result) -> Expression:
        """The expression for a value, which is read once more."""
        self.left[result] -= 1
        if result in self.waiting and self.left[result] <= 0:
            self.waiting.remove(result)
        return self.values[result]

    def variable(self, result: Result) -> str:
        """The variable that holds a value; this is no reading of it."""
        said = self.values[result]
        if not isinstance(said, ast.Name):
            if result in self.waiting:
                self.waiting.remove(result)
            self.assign(result, said)
        return ast.unparse(self.values[result])

    # ------------------------------------------------------------ lines

    def line(self, statement: str, comment: str = "") -> None:
        """A statement, and behind it what it gives."""
        self.lines += [f"{statement}  # {prose(comment)}" if comment else statement]

    @contextmanager
    def indented(self, head: str) -> Iterator[None]:
        """Put the lines written within it below another."""
        at = len(self.lines)
        yield
        if len(self.lines) > at:
            self.lines[at:] = [head, *(f"    {line}" if line else "" for line in self.lines[at:])]

    @contextmanager
    def guard(self, condition: str) -> Iterator[None]:
        """Put the lines written within it under an `if`; values that are read behind it are None otherwise, masks are
        forgotten."""
        masks, known = dict(self.masks), set(self.values)
        with self.indented(f"if {condition}:"):
            yield
            read = [each for each in self.values if each not in known and self.left[each] > 0]
            names = dict.fromkeys(self.variable(each) for each in read)
        if names:
            self.line("else:")
            self.line(f"    {' = '.join([*names, 'None'])}")
        self.masks = masks

    def shape(self, type_: TensorType) -> str:
        """The shape of a value as a comment says it."""
        axes = [str(axis.size if axis.size is not None else axis.name) for axis in type_.shape]
        return f"[{', '.join([*([] if type_.per == 'batch' else [self.outer]), *axes])}]"


def expanded(value: Value, like: Expression, rank: int, inside: bool) -> Expression:
    """What is the same for all examples, for as many as a value has, of which one example has so many axes."""
    kept = "".join(", -1" for _ in range(value.rank))
    outer = "len(_1)" if not inside else f"*_1.shape[:-{rank}]" if rank else "*_1.shape"
    return text(f"_0.expand({outer}{kept})", value.said, like)
