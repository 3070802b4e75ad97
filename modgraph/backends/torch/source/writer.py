"""Writes ops as lines of a function, and records the members that the lines need."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import torch

from modgraph import nn as library
from modgraph.backends.torch.construct import construct
from modgraph.backends.torch.source import formulas
from modgraph.backends.torch.source.formulas import Expression, Value, call_of, expand, name, text
from modgraph.backends.torch.source.layout import Item, Layout
from modgraph.backends.torch.source.lines import DEEP, Lines
from modgraph.backends.torch.source.members import Tree
from modgraph.backends.torch.source.text import last_word, literal, number_names
from modgraph.ir import Body, OpNode, Result, RouteNode, ScanNode
from modgraph.ops.array import Array, State

if TYPE_CHECKING:
    from modgraph.backends.torch.source.file import File

LONGEST = 200  # the length of a returned expression


class Writer:
    """Writes a function of the class at `root` in a tree.

    In a function that is `inside` a pool's module, values have any outer axes instead of the axis of examples.
    """

    def __init__(self, file: File, layout: Layout, tree: Tree, root: str, inside: bool = False) -> None:
        self.file, self.layout, self.tree, self.root, self.inside = file, layout, tree, root, inside
        self.graph, self.vendored, self.lines = layout.graph, file.vendored, Lines(layout.word)
        self.helpers: dict[str, str] = {}  # modules without weights, by attribute
        self.borrowed: dict[str, str] = {}  # arguments for members outside the class, by path
        self.apart: set[Result] = set()  # values that are bounded away from zero
        self.returned: set[Result] = set()

    # ------------------------------------------------------------ what the class holds

    def write_member(self, path: str) -> str:
        """Write the expression for the member at a path."""
        if not self.root or path.startswith(f"{self.root}."):
            return self.tree.access(path, self.root)
        if path not in self.borrowed:
            self.borrowed[path] = self.lines.fresh_name(last_word(path))
        return self.borrowed[path]

    def write_argument(self, path: str) -> str:
        """Write the argument for the member at a path; of a pool, only its modules."""
        size = self.tree.sharing.get(path) if (id(self.tree), path) not in self.file.whole_pools else None
        said = self.write_member(path)
        return f"{said}[:{size}]" if size and path not in self.borrowed else said

    def add_helper(self, word: str, made: str) -> str:
        """Write the expression for a module without weights."""
        known = next((name for name, each in self.helpers.items() if each == made), None)
        if known is None:
            taken = {*self.helpers, *self.tree.list_children(self.root), *dir(torch.nn.Module())}
            known = next(each for each in number_names(word) if each not in taken)
            self.helpers[known] = made
        return f"self.{known}"

    # ------------------------------------------------------------ values

    def items(self, body: Body, ends: Sequence[Result]) -> list[Item]:
        """List the items of a body, and count the reads of their operands and of the results `ends`."""
        items = [*self._flat(body)]
        for item in items:
            self.lines.left.update(
                self.layout.list_arguments(item) if isinstance(item, Body) else self.layout.list_reads(item)
            )
        self.lines.left.update(ends)
        self.returned = {*ends}
        return items

    def _flat(self, body: Body) -> Iterable[Item]:
        """List the items of a body. Calls without an instance are inlined."""
        for item in self.layout.items(body):
            inner = isinstance(item, Body) and not self.file.has_class(self, item)
            yield from self._flat(item) if inner else [item]  # type: ignore[arg-type]

    def value(self, result: Result) -> Value:
        """Read a value."""
        rank = len(self.graph.type_of(result).shape)
        return Value(self.lines.read(result), rank, self.layout.is_bare(result), result in self.apart)

    def set(self, result: Result, said: Expression, *, stays: bool = True) -> None:
        """Set the value of a node's result."""
        users = [name for name in self.layout.readers[result] if name in self.layout.live]
        binding, word = result.node.rpartition(".")[0], self.lines.word
        bound = (user.rpartition(".")[0] == binding or word(result) == word(Result(user)) for user in users)
        same = result in self.returned or all(bound)  # it shares a binding or a pipeline with all readers
        deep = LONGEST if result in self.returned else DEEP
        self.lines.set(result, said, self.shape(result, "..." if self.inside else "B"), stays and same, deep)

    def shape(self, result: Result, outer: str) -> str:
        """Write the shape of a value for a comment, with the axes before those of an example."""
        axes = [str(axis.size if axis.size is not None else axis.name) for axis in self.graph.type_of(result).shape]
        return f"[{', '.join([*([] if self.layout.is_bare(result) else [outer]), *axes])}]"

    def read_operands(self, node: OpNode | RouteNode | ScanNode) -> tuple[list[Value], list[Expression | None]]:
        """Read the operands of a node and the masks of padded operands.

        An operand that all examples share is expanded to the batch, unless the op broadcasts it.
        """
        operands, counts = self.layout.list_operands(node), self.layout.find_batch_size(node)
        masks = self._masks(node, operands)
        same = [each.node in self.layout.invariant for each in operands]
        broadcasts = isinstance(node, OpNode) and node.op.broadcasts and not counts
        like = None
        if any(same) and not broadcasts and node.name not in self.layout.invariant:
            like = counts[0] if counts else next(each for each in operands if not self.layout.is_bare(each))
            self.lines.variable(like)
        values = [self.value(each) for each in operands]
        self.lines.left.subtract([*counts, *self.layout.list_lengths(node)])
        if like is not None:
            said = self.lines.values[like], len(self.graph.type_of(like).shape), self.inside
            values = [
                Value(expand(value, *said), value.rank) if is_same else value
                for is_same, value in zip(same, values, strict=True)
            ]
        return values, masks

    def _masks(self, node: OpNode | RouteNode | ScanNode, operands: Sequence[Result]) -> list[Expression | None]:
        found: list[Expression | None] = [None] * len(operands)
        known, lengths = self.lines.masks, self.graph.lengths(node.name)
        if not lengths or isinstance(node, ScanNode):
            return found
        signature = self.graph.signature(node)
        padding = signature.padding() if signature.declaration.masks_each else signature.padding()[:1]
        for at, (of, axes) in enumerate(zip(operands, padding, strict=False)):
            key = tuple((place + 1, lengths[axis]) for place, axis in axes.items()), len(self.graph.type_of(of).shape)
            if axes and key not in known:
                x, function = self.lines.variable(of), self.vendored.name_of(library.valid)
                masks = [f"{function}({x}, {place}, {self.lines.variable(each)})" for place, each in key[0]]
                known[key] = self.lines.fresh_name("mask")
                self.lines.line(f"{known[key]} = {' & '.join(masks)}")
            found[at] = name(known[key]) if axes else None
        return found

    # ------------------------------------------------------------ ops

    def op(self, node: OpNode) -> None:
        """Write the lines of an op."""
        result, same = Result(node.name), self.layout.find_unchanged_operand(node)
        if same is not None:
            self._same(result, same)
        elif isinstance(node.op, State):
            self.apart.add(result)
            self.set(result, name(f"{self.write_member(node.owner)}()"), stays=False)
        elif isinstance(node.op, Array):
            self.set(
                result, name(self.write_member(node.owner)) if node.op.all_weights() else self._constant_array(node)
            )
        elif len(node.types) > 1:
            self.lines.set_all([Result(node.name, at) for at in range(len(node.types))], self._compute(node))
        else:
            self.set(result, self._compute(node), stays=not self.layout.is_chance(node))

    def _same(self, result: Result, source: Result) -> None:
        if source in self.lines.waiting and self.lines.left[result] > 1:
            self.lines.variable(source)
        said = self.lines.read(source)
        if source in self.apart:
            self.apart.add(result)
        if isinstance(said, ast.Name):
            self.lines.give(result, said.id)
        else:
            self.lines.wait(result, said)

    def _constant_array(self, node: OpNode) -> Expression:
        _, (_, sizes, values), named = self.graph.signature(node).constructor()
        values = [*map(int, values)] if named["ids"] else values
        (like,) = self.layout.list_reads(node)
        if len(values) == 1:
            said, more = f"full({literal(tuple(sizes))}, {literal(values[0])}", ")"
        else:
            said, more = f"tensor({literal(list(values))}", f").reshape({literal(tuple(sizes))})"
        plain = self.graph.type_of(like).dtype == "float" and not named["ids"]
        said = f"_0.new_{said}{more}" if plain else f"torch.{said}, device=_0.device{more}"
        return text(said, self.lines.read(like))

    def _compute(self, node: OpNode) -> Expression:
        """Write the expression for an op: a formula, or a call of its module."""
        bare, module = node.name in self.layout.invariant, None
        if not node.op.all_weights():
            with torch.device("meta"):
                module = construct(self.graph.signature(node))
        values, masks = self.read_operands(node)
        # torch's own function accepts only [B, C, H, W]
        outside = isinstance(module, library.MaxPool2d) and (self.inside or values[0].rank != 3)
        if module is not None and not outside and not (bare and isinstance(module, formulas.NOT_BARE)):
            found = formulas.formula(module, values, masks, self.vendored)
            if found is not None:
                if formulas.is_apart(module, values):
                    self.apart.add(Result(node.name))
                return found
        said = [text("_0[None]", each.said) if bare else each.said for each in values]
        if node.op.all_weights():
            function = self.write_member(node.owner)
        else:
            function = self.add_helper(node.op.name, self.file.instantiate(self.graph.signature(node).constructor()))
        mask: Expression | None = None
        if any(masks):
            mask = ast.Tuple([each or name("None") for each in masks], ast.Load()) if node.op.masks_each else masks[0]
        found = call_of(function, said, mask=mask)
        return text("_0[0]", found) if bare else found
