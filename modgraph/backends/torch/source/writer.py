"""Writes what a body computes: the lines of a function, and what its class must hold for them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import torch

from modgraph import nn as library
from modgraph.backends.torch.construct import construct
from modgraph.backends.torch.source.copied import STANDALONE
from modgraph.backends.torch.source.formulas import (
    NOT_BARE,
    Expression,
    Value,
    called,
    constant,
    formula,
    is_apart,
    name,
    text,
)
from modgraph.backends.torch.source.function import DEEP, LONGEST, Lines, expanded
from modgraph.backends.torch.source.layout import Item, Layout
from modgraph.backends.torch.source.members import Tree
from modgraph.backends.torch.source.names import last_word, numbered
from modgraph.backends.torch.source.text import literal
from modgraph.ir import Body, Node, OpNode, Result, RouteNode, ScanNode
from modgraph.ops.array import Array, State

if TYPE_CHECKING:
    from modgraph.backends.torch.source.file import File

IMAGES = (library.MaxPool2d, library.AvgPool2d)  # torch's own functions take [B, C, H, W] alone
Rules = Mapping[type, Callable[["Writer", Any], None]]


class Writer:
    """Writes into a function of the class that holds what stands below `root` in a tree; `inside` says that values have
    any outer axes, not that of the batch."""

    def __init__(
        self,
        file: File,
        layout: Layout,
        tree: Tree,
        root: str,
        lines: Lines,
        inside: bool = False,
    ) -> None:
        self.file, self.layout, self.tree, self.root = file, layout, tree, root
        self.graph, self.lines, self.inside = layout.graph, lines, inside
        self.copied = file.copied
        self.names = lines  # those of the function, where this is a step within it
        self.helpers: dict[str, str] = {}  # modules without weights, by attribute
        self.borrowed: dict[str, str] = {}  # the arguments for what stands elsewhere, by path
        self.apart: set[Result] = set()  # values that are away from zero
        self.returned: set[Result] = set()

    # ------------------------------------------------------------ what the class holds

    def member(self, path: str) -> str:
        """The expression for what stands at a path."""
        if not self.root or path.startswith(f"{self.root}."):
            return self.tree.at(path, self.root)
        if path not in self.borrowed:
            self.borrowed[path] = self.names.named(last_word(path))
        return self.borrowed[path]

    def pool(self, path: str) -> str:
        """The expression for the modules of a pool, without what they share."""
        size = self.tree.sharing.get(path) if (id(self.tree), path) not in self.file.whole_pools else None
        said = self.member(path)
        return f"{said}[:{size}]" if size and path not in self.borrowed else said

    def argument(self, path: str) -> str:
        """What stands at a path, as an argument."""
        return self.pool(path) if path in self.tree.sharing else self.member(path)

    def helper(self, word: str, made: str) -> str:
        """The expression for a module without weights."""
        known = next((name for name, each in self.helpers.items() if each == made), None)
        if known is None:
            taken = {*self.helpers, *self.tree.children(self.root), *dir(torch.nn.Module())}
            known = next(each for each in numbered(word) if each not in taken)
            self.helpers[known] = made
        return f"self.{known}"

    # ------------------------------------------------------------ items

    def count(self, items: Iterable[Item], ends: Sequence[Result] = ()) -> None:
        """Count what some items read, and what is returned behind them."""
        for item in items:
            read = self.layout.takes(item) if isinstance(item, Body) else self.layout.reads(item)
            self.lines.left.update(each for each in read)
        self.lines.left.update(ends)
        self.returned = {*ends}

    def flat(self, body: Body) -> list[Item]:
        """What is computed in a body, with that of calls whose weights belong to no instance of their own."""
        found: list[Item] = []
        for item in self.layout.items(body):
            inner = isinstance(item, Body) and not self.file.has_class(self, item)
            found += self.flat(item) if inner else [item]  # type: ignore[arg-type]
        return found

    def write(self, items: Sequence[Item], condition: str = "") -> None:
        """The lines of some items; of those that may lack targets below a condition."""
        for below, group in groupby(items, lambda item: bool(condition) and self.layout.is_optional(item)):
            if not below:
                self._write([*group])
                continue
            with self.lines.guard(condition):
                self._write([*group])

    def _write(self, items: Sequence[Item]) -> None:
        from modgraph.backends.torch.source.calls import first_words, rounds, write_call, write_loop

        self.lines.words |= first_words(self.layout, items)
        for run in rounds(self.layout, items):
            if len(run) > 1 and write_loop(self, run):  # type: ignore[arg-type]
                continue
            for item in run:
                if isinstance(item, Body):
                    write_call(self, item)
                else:
                    self.node(item)

    def node(self, node: Node) -> None:
        """The lines of one node."""
        if isinstance(node, OpNode):
            self._op(node)
        elif isinstance(node, RouteNode | ScanNode):
            self.file.rules[type(node)](self, node)

    def type_of(self, result: Result) -> Any:
        return self.graph.type_of(result)

    def value(self, result: Result) -> Value:
        """A value that is read."""
        rank = len(self.type_of(result).shape)
        return Value(self.lines.read(result), rank, self.layout.is_bare(result), result in self.apart)

    def set(self, result: Result, said: Expression, *, stays: bool = True) -> None:
        """A value of a node."""
        users = [name for name in self.layout.readers[result] if name in self.layout.live]
        same = result in self.returned or all(self._is_of_binding(result, user) for user in users)
        deep = LONGEST if result in self.returned else DEEP
        self.lines.set(result, said, self.shape(result), stays and same, deep)

    def _is_of_binding(self, result: Result, user: str) -> bool:
        """Whether a value stands in one binding, or one pipeline, with the node that reads it."""
        paths = [each.rpartition(".")[0] for each in (result.node, user)]
        return paths[0] == paths[1] or self.lines.word(result) == self.lines.word(Result(user))

    def shape(self, result: Result) -> str:
        bare = result.node in self.layout.alike
        shape = self.lines.shape(self.type_of(result))
        return shape.replace(f"{self.lines.outer}, ", "", 1).replace(f"[{self.lines.outer}]", "[]") if bare else shape

    # ------------------------------------------------------------ ops

    def _op(self, node: OpNode) -> None:
        result = Result(node.name)
        same = self.layout.same(node)
        if same is not None:
            self._same(result, same)
        elif isinstance(node.op, Array):
            self._array(node)
        else:
            said = self._computed(node)
            if len(node.types) > 1:
                self.lines.set_all([Result(node.name, at) for at in range(len(node.types))], said)
            else:
                self.set(result, said, stays=not self.layout.is_chance(node))

    def _same(self, result: Result, source: Result) -> None:
        """A value that is another one."""
        said = self.lines.values[source]
        if source in self.lines.waiting and self.lines.left[result] > 1:
            said = name(self.lines.variable(source))
        self.lines.read(source)
        if source in self.apart:
            self.apart.add(result)
        if isinstance(said, ast.Name):
            self.lines.give(result, said.id)
        else:
            self.lines.values[result] = said
            self.lines.waiting.append(result)

    def _array(self, node: OpNode) -> None:
        """Learned arrays, given ones, and states, without an axis of examples."""
        result = Result(node.name)
        if isinstance(node.op, State):
            self.apart.add(result)
            self.set(result, name(f"{self.member(node.owner)}()"), stays=False)
        elif node.op.all_weights():
            self.set(result, name(self.member(node.owner)))
        else:
            _, (_, sizes, values), _ = self.graph.signature(node).constructor()
            (like,) = self.layout.reads(node)
            if len(values) == 1:
                said, more = f"full({literal(tuple(sizes))}, {literal(values[0])}", ")"
            else:
                said, more = f"tensor({literal(list(values))}", f").reshape({literal(tuple(sizes))})"
            plain = self.type_of(like).dtype == "float"
            said = f"_0.new_{said}{more}" if plain else f"torch.{said}, device=_0.device{more}"
            self.set(result, text(said, self.lines.read(like)))

    def _computed(self, node: OpNode) -> Expression:
        """The expression for what an op gives."""
        operands = [*self.graph.inputs(node.name).values()]
        bare = node.name in self.layout.alike
        real = self.real(node, operands)
        values = [self.value(each) for each in operands]
        for each in (*self.layout.counts(node), *self.layout.lengths(node)):
            self.lines.left[each] -= 1
        values = self.for_examples(node, operands, values)
        module = None if node.op.all_weights() else self._module(node)
        outside = isinstance(module, IMAGES) and (self.inside or values[0].rank != 3)
        if module is not None and not outside and not (bare and isinstance(module, NOT_BARE)):
            found = formula(module, values, real, self.copied)
            if found is not None:
                if is_apart(module, values):
                    self.apart.add(Result(node.name))
                return found
        said = [each.said for each in values]
        if bare:
            said = [text("_0[None]", each) for each in said]
        found = self._by_module(node, said, real)
        return text("_0[0]", found) if bare else found

    def for_examples(self, node: Node, operands: Sequence[Result], values: Sequence[Value]) -> list[Value]:
        """The operands of a node, those that are the same for all examples for as many as the others have, where the
        node does not take them so."""
        of_batch = [each.node not in self.layout.alike for each in operands]
        takes_so = isinstance(node, OpNode) and (node.op.broadcasts and not self.layout.counts(node))
        if takes_so or node.name in self.layout.alike or all(of_batch):
            return [*values]
        counts = self.layout.counts(node)
        like = counts[0] if counts else next(each for each in operands if not self.layout.is_bare(each))
        said, rank = name(self.lines.variable(like)), len(self.type_of(like).shape)
        if not counts:  # the variable may just have got its name
            values = [
                Value(said, each.rank, each.is_bare) if operand == like else each
                for operand, each in zip(operands, values, strict=True)
            ]
        return [
            each if own else Value(expanded(each, said, rank, self.inside), each.rank)
            for own, each in zip(of_batch, values, strict=True)
        ]

    def _module(self, node: OpNode) -> Any:
        with torch.device("meta"):
            return construct(self.graph.signature(node))

    def _by_module(self, node: OpNode, said: Sequence[Expression], real: Sequence[Expression | None]) -> Expression:
        """A call of an op's module."""
        if node.op.all_weights():
            function = self.member(node.owner)
        else:
            function = self.helper(node.op.name, self.file.made(self.graph.signature(node).constructor()))
        masks: Expression | None = None
        if any(real):
            masks = ast.Tuple([each or constant(None) for each in real], ast.Load()) if node.op.masks_each else real[0]
        return called(function, said, real=masks)

    # ------------------------------------------------------------ padding

    def real(self, node: OpNode | RouteNode, operands: Sequence[Result]) -> list[Expression | None]:
        """The masks of a node's operands: of each that has padding."""
        lengths = self.graph.lengths(node.name)
        if not lengths:
            return [None] * len(operands)
        signature = self.graph.signature(node)
        padding = signature.padding()
        count = len(operands) if signature.declaration.masks_each else 1
        found = [
            self._mask(of, {at + 1: lengths[axis] for at, axis in each.items()})
            for of, each in zip(operands[:count], padding, strict=False)
        ]
        return [*found, *[None] * (len(operands) - len(found))]

    def _mask(self, of: Result, lengths: Mapping[int, Result]) -> Expression | None:
        if not lengths:
            return None
        key = (tuple(lengths.items()), len(self.type_of(of).shape))
        if key not in self.lines.masks:
            x = self.lines.variable(of)
            function = self.copied.needed((STANDALONE, "real_places"))
            masks = [f"{function}({x}, {axis}, {self.lines.variable(each)})" for axis, each in lengths.items()]
            self.lines.masks[key] = self.lines.named("real")
            self.lines.line(f"{self.lines.masks[key]} = {' & '.join(masks)}")
        return name(self.lines.masks[key])
