"""The statements of a plan: a line for each value that is read more than once, or that a spec names."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from modgraph.backends.torch.padding import Padding
from modgraph.backends.torch.run import Step
from modgraph.backends.torch.source.copied import Copied
from modgraph.backends.torch.source.formulas import Expression, Value, name, text
from modgraph.backends.torch.source.loops import folded
from modgraph.backends.torch.source.names import free, names, variable
from modgraph.backends.torch.source.quote import prose
from modgraph.ir import Graph, Result

WIDTH = 100  # of a line, before its comment
RETURN = "return"  # in place of a step, as the reader of a value
DEEP = 60  # an expression that is longer has a name of its own


class Body:
    """The lines of a function. `values` are what results are called in it, `lengths` those of axes of any length."""

    def __init__(
        self,
        graph: Graph,
        read: Iterable[Result],
        readers: Mapping[Result, str],
        outer: str = "B",
        taken: Iterable[str] = (),
    ) -> None:
        self.graph = graph
        self.uses = Counter(read)
        self.readers = readers  # the step that reads a value, of several the last
        self.outer = outer  # the axes before an example's own
        self.taken = set(taken)
        self.temporaries: dict[str, str] = {}
        self.batch = ""  # the first argument, which has as many examples as the batch
        self.copied = Copied()
        self.common: dict[str, str] = {}  # what several routes have in common
        self.begun: dict[str, str] = {}  # pools taken by index, made before a scan
        self.values: dict[Result, Value] = {}
        self.left = Counter(self.uses)  # how often each value is still to be read
        self.owners: dict[str, list[Result]] = {}  # the values that each variable holds
        self.waiting: list[Result] = []  # values that stand in no line yet, in their order
        self.lines: list[str] = []
        self.masks: dict[str, str] = {}

    # ------------------------------------------------------------ values

    def argument(self, result: Result, called: str) -> str:
        """A value that is given, under a name."""
        called = self.named(called)
        self.values[result] = self.value(result, name(called))
        self.batch = self.batch or called
        return called

    def given(self, result: Result, called: str) -> str:
        """A value that is given under just this name."""
        self.taken.add(called)
        self.known(result, called)
        self.batch = self.batch or called
        return called

    def known(self, result: Result, said: str) -> None:
        """A value that another function has computed."""
        self.values[result] = self.value(result, name(said))

    def named(self, called: str) -> str:
        """A name that nothing else has from here on."""
        called = free(called, self.taken)
        self.taken.add(called)
        return called

    def value(self, result: Result, said: Expression) -> Value:
        """A value that is said so. What stands behind the results of a node is the same for all examples."""
        node = self._node(result)
        is_one = node is not None and result.index >= len(node.types)
        type_ = node.types[result.index % len(node.types)] if node is not None else None
        is_number = type_ is not None and type_.per == "batch" and not type_.shape
        rank = None if type_ is None else len(type_.shape)
        return Value(said, is_number, is_one, is_one and self.outer != "B", rank)

    def add_readers(self, result: Result, times: int = 1) -> None:
        """Count further readers of a value, before it is computed."""
        self.uses[result] += times
        self.left[result] += times

    def like(self, result: Result) -> str:
        """A value with as many examples as this one, which is perhaps not at hand."""
        known = self.values.get(result) or next(iter(self.values.values()))
        return ast.unparse(known.said)

    def _node(self, result: Result) -> Any:
        return self.graph[result.node] if result.node in self.graph else None  # noqa: SIM401 - a graph has no `get`

    def type_of(self, result: Result) -> Any:
        node = self._node(result)
        return node.types[result.index] if node is not None and result.index < len(node.types) else None

    def said(self, results: Sequence[Result]) -> list[Value]:
        """Expressions for some values, in the order in which they are computed. Those that wait stand in the
        expression that is made of these; where that would change the order, they get lines of their own."""
        waiting = [each for each in results if each in self.waiting]
        if waiting != self.waiting[len(self.waiting) - len(waiting) :]:
            self.settle()
        for each in waiting:
            if each in self.waiting:
                self.waiting.remove(each)
        self.left.subtract(results)
        return [self.values[each] for each in results]

    def variables(self, results: Sequence[Result], again: bool = False) -> list[str]:
        """Names, or other short expressions, for some values, which are perhaps read `again` later."""
        self.settle()
        if not again:
            self.left.subtract(results)
        return [ast.unparse(self.values[each].said) for each in results]

    def returned(self, results: Sequence[Result]) -> list[str]:
        """Expressions for what a function returns."""
        return [ast.unparse(each.said) for each in self.said(results)]

    def settle(self, before: Expression | None = None) -> None:
        """Give all that waits a line, before one that says this."""
        for result in list(self.waiting):
            self.waiting.remove(result)
            self._assign(result, self.values[result].said, before)

    # ------------------------------------------------------------ statements

    def gives(self, result: Result, said: Expression, consumer: str | None = None) -> None:
        """A value is computed so: in a line of its own, or within the line of the one that reads it."""
        if isinstance(said, ast.Name | ast.Attribute | ast.Constant):
            self.values[result] = self.value(result, said)
            self._share_name(result)
        elif self.uses[result] == 1 and consumer is not None and self._within(result, consumer, said):
            self.values[result] = self.value(result, said)
            self.waiting.append(result)
        else:
            self.settle(said)
            self._assign(result, said)

    def alias(self, result: Result, other: Result) -> None:
        """Make a value another name for one that has been computed."""
        self.values[result] = self.values[other]
        self._share_name(result)

    def _share_name(self, result: Result) -> None:
        """Keep the variable of this value as long as something reads the value."""
        said = self.values[result].said
        if isinstance(said, ast.Name) and said.id in self.owners:
            self.owners[said.id].append(result)

    def _within(self, result: Result, consumer: str, said: Expression) -> bool:
        """Whether a value needs no name: it has none in the spec, and is short."""
        if consumer == RETURN:
            return True
        binding, other = (each.partition("~")[0].rpartition(".")[0] for each in (result.node, consumer))
        return len(ast.unparse(said)) <= DEEP and (
            binding == other or self.called(result) == result.node.split(".")[-1]
        )

    def called(self, result: Result) -> str:
        return variable(result.node, self._node(result))

    def _name_for(self, result: Result, before: Expression | None = None) -> str:
        """A name for a value: perhaps one whose value nothing reads any more, of what waits and what comes next."""
        batch = self.batch if self._is_of_batch(result) else ""  # which stays one of examples
        unsaid = [*(self.values[each].said for each in self.waiting), *([before] if before is not None else [])]
        waiting = {each.id for one in unsaid for each in ast.walk(one) if isinstance(each, ast.Name)}
        for called in names(self.called(result)):
            old = self.owners.get(called, [])
            is_free = old and all(self.left[each] <= 0 for each in old) and called not in waiting and called != batch
            if called not in self.taken or is_free:
                break
        self.owners[called] = [result]
        self.taken.add(called)
        return called

    def _is_of_batch(self, result: Result) -> bool:
        """Whether a value has no axis of examples."""
        type_ = self.type_of(result)
        return type_ is None or type_.per == "batch"

    def temporary(self, called: str) -> str:
        """A name for what the next line alone reads."""
        if called not in self.temporaries:
            self.temporaries[called] = self.named(called)
        return self.temporaries[called]

    def _assign(self, result: Result, said: Expression, before: Expression | None = None) -> None:
        called = self._name_for(result, before)
        self.line(f"{called} = {ast.unparse(said)}", self.shape(result))
        self.values[result] = self.value(result, name(called))

    def assign_all(self, results: Sequence[Result], said: str) -> None:
        """Several values that are computed at once; those that nothing reads have no name."""
        self.settle()
        names = [self._name_for(each) if self.uses[each] else "_" for each in results]
        for each, called in zip(results, names, strict=True):
            self.values[each] = self.value(each, name(called))
        self.line(f"{', '.join(names)} = {said}{'[0]' if len(names) == 1 else ''}")

    def line(self, statement: str, comment: str = "") -> None:
        """A statement, and behind it what it gives."""
        self.lines += [f"{statement}  # {prose(comment)}" if comment else statement]

    @contextmanager
    def guard(self, condition: str) -> Iterator[None]:
        """Put the lines written within it under an `if`, and forget afterwards the variables that only they define."""
        self.settle()
        at, kept = len(self.lines), [(known, dict(known)) for known in (self.masks, self.common, self.temporaries)]
        yield
        self.settle()
        self.lines[at:] = [f"if {condition}:", *(f"    {line}" for line in self.lines[at:])]
        for known, before in kept:
            known.clear()
            known.update(before)

    def folded(self) -> list[str]:
        """The lines, those that are said several times one after another in a loop."""
        self.settle()
        return folded(self.lines)

    def shape(self, result: Result) -> str:
        """The shape of a value as a comment says it."""
        type_ = self.type_of(result)
        if type_ is None:
            return ""
        axes = [str(axis.size if axis.size is not None else axis.name) for axis in type_.shape]
        return f"[{', '.join([*([] if type_.per == 'batch' else [self.outer]), *axes])}]"

    # ------------------------------------------------------------ padding

    def real(self, step: Step) -> str | None:
        """The masks that a step is told, as an argument; None where it is told none."""
        if not step.padding:
            return None
        if not step.each:
            mask = self._mask(step.padding[0], step.operands[0])
            return None if mask == "None" else mask
        found = self.masks_of(step)
        return f"({', '.join(found)}{',' if len(found) == 1 else ''})" if {*found} != {"None"} else None

    def masks_of(self, step: Step) -> list[str]:
        """The mask of each operand."""
        return [self._mask(each, result) for each, result in zip(step.padding, step.operands, strict=False)]

    def _mask(self, padding: Padding, of: Result) -> str:
        if not padding.lengths:
            return "None"
        rank = len(self.graph.type_of(of).shape) if of.index < len(self.graph[of.node].types) else 0
        key = f"{padding.name} of {rank}"
        if key not in self.masks:
            (x,) = self.variables([of], again=True)
            lengths = ", ".join(
                f"{axis}: {self.variables([each], again=True)[0]}" for axis, each in padding.lengths.items()
            )
            self.masks[key] = self.named("real")
            along = self.copied.needed(("modgraph.nn.padding", "valid_along"))
            self.line(f"{self.masks[key]} = {along}({x}, {{{lengths}}})")
        return self.masks[key]


def called(function: str, arguments: Sequence[Expression], **named: str | None) -> Expression:
    """A call; arguments by name that are None are left out."""
    told = [f"{key}={value}" for key, value in named.items() if value is not None]
    return text(f"{function}({', '.join([*(f'_{at}' for at in range(len(arguments))), *told])})", *arguments)
