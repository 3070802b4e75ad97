"""Writes pools: the classes of their modules, and lists of these."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from modgraph.backends.torch.construct import resolve
from modgraph.backends.torch.source.copied import STANDALONE
from modgraph.backends.torch.source.formulas import name
from modgraph.backends.torch.source.function import Lines, expanded
from modgraph.backends.torch.source.layout import Layout
from modgraph.backends.torch.source.members import Tree
from modgraph.backends.torch.source.names import class_name, last_word
from modgraph.backends.torch.source.writer import Writer
from modgraph.ir import OpNode, PoolNode, Result, RouteNode, weights_of

if TYPE_CHECKING:
    from modgraph.backends.torch.source.file import File


def pool_of(file: File, tree: Tree, node: PoolNode, program: PoolNode) -> str:
    """The call that makes a pool."""
    names = define_modules(file, node, program)
    shared, given = shared_parts(file, node), ""
    if shared.leaves:
        given = f"shared_{len(tree.after)}" if tree.after else "shared"
        tree.after[node.name] = given
        tree.before += [f"{given} = {shared.container('')}", *shared.starts("", given)]
    calls = ", ".join(f"{each}({given})" for each in names)
    if node.alike:
        calls = f"{names[0]}({given}) for _ in range({node.size})"
    if (id(tree), node.name) not in file.whole_pools:
        return f"nn.ModuleList([{calls}])"
    ranks = {"rank": len(node.message.shape), "result_rank": len(node.result.shape)}
    told = [f"{key}={value}" for key, value in ranks.items() if value != 1]
    return f"{file.copied.needed((STANDALONE, 'Pool'))}({', '.join([f'[{calls}]', *told])})"


def shared_parts(file: File, node: PoolNode) -> Tree:
    """What the modules of a pool have in common."""
    region = node.region(0).graph
    own = [each for each in region.of_kind(OpNode) if any(weight.shared for weight in each.op.all_weights())]
    tree = Tree((weight for weight in weights_of(region) if weight.shared and node.alike), file.copied)
    for each in own if node.alike else ():
        path, positional, named = region.signature(each).constructor()
        file.leaf(tree, each.owner, (resolve(path).Shared, positional, named))
    return tree


def define_modules(file: File, node: PoolNode, program: PoolNode) -> list[str]:
    """The class of each module, of one for all that are alike."""
    return [_module_class(file, node, program, at) for at in range(len(node.regions))]


def define_pools(file: File, tree: Tree) -> None:
    """The classes of modules that no route may send anything to."""
    for node, program in tree.pools:
        define_modules(file, node, program)


def _module_class(file: File, node: PoolNode, program: PoolNode, at: int) -> str:
    region = node.region(at)
    word, shared = last_word(node.name), shared_parts(file, node)
    content = tuple((each.name, each.shape, each.initial, each.scale) for each in weights_of(region.graph))
    key = (word, region, program.regions[at].graph, content, bool(shared.leaves))
    if key not in file.modules:
        layout = Layout(region.graph, program.regions[at].graph, region.results)
        tree = file.tree(region.graph, layout, shared if shared.leaves else None)
        routes = bool(region.graph.of_kind(RouteNode))
        writer = Writer(
            file, layout, tree, "", Lines(layout.word, "B" if routes else "...", {"lead", "y"}), inside=not routes
        )
        forward = _forward(writer, region.arguments[0], region.results[0], len(node.message.shape) if routes else None)
        define_pools(file, tree)
        shapes = [_shape(writer, each) for each in (Result(region.arguments[0]), region.results[0])]
        doc = f"One module of {word}: {' to '.join(shapes)}."
        given = ", shared" if shared.leaves else ""
        file.modules[key] = file.add(
            class_name(word), lambda name: file.class_(name, writer, forward, doc, given=given)
        )
    return file.modules[key]


def _forward(writer: Writer, argument: str, result: Result, rank: int | None) -> str:
    """The function of a module; one with routes, which are given a rank, takes all outer axes as one."""
    from modgraph.backends.torch.source.file import function

    lines, layout = writer.lines, writer.layout
    items = writer.flat(layout.root)
    writer.count(items, [result])
    x = lines.named(argument)
    lines.give(Result(argument), x)
    given = x
    if rank is not None:
        lines.line(f"lead = {x}.shape[:-{rank}]" if rank else f"lead = {x}.shape")
        lines.line(f"{x} = {x}.reshape(-1, *{x}.shape[{-rank if rank else f'{x}.dim()'}:])")
    lines.left[Result(argument)] += layout.is_bare(result)
    writer.write(items)
    value = writer.value(result)
    said = (
        expanded(value, name(x), len(writer.type_of(Result(argument)).shape), writer.inside)
        if value.is_bare
        else value.said
    )
    if rank is None:
        lines.line(f"return {ast.unparse(said)}")
    else:
        if not isinstance(said, ast.Name):
            lines.line(f"y = {ast.unparse(said)}")
        y = said.id if isinstance(said, ast.Name) else "y"
        lines.line(f"return {y}.reshape(*lead, *{y}.shape[1:])")
    return function("forward", ["self", given], lines.lines)


def _shape(writer: Writer, result: Result) -> str:
    axes = (str(axis.size if axis.size is not None else axis.name) for axis in writer.type_of(result).shape)
    return f"[{', '.join(['...', *axes])}]"
