"""Collects the definitions of a file: classes, functions, and the modules of pools."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any

from torch import nn

from modgraph.backends.torch.construct import resolve
from modgraph.backends.torch.source.calls import Defined, outside, write_items
from modgraph.backends.torch.source.formulas import expand, name
from modgraph.backends.torch.source.layout import Layout
from modgraph.backends.torch.source.members import Tree, parameter
from modgraph.backends.torch.source.text import LINE, class_name, free, last_word, literal, prose, reserve_names
from modgraph.backends.torch.source.vendored import Vendored
from modgraph.backends.torch.source.writer import Writer
from modgraph.ir import Body, Graph, OpNode, PoolNode, Region, Result, RouteNode, weights_of
from modgraph.nn import Pool

Made = tuple[Any, Sequence[Any], Mapping[str, Any]]  # a class or its path, and the arguments of its constructor
PLAIN = ("Linear", "Conv2d", "ConvTranspose2d", "GroupNorm")  # modgraph's modules that a file replaces by torch's own


class File:
    """The vendored code and the definitions of a file. A definition follows those that it uses."""

    def __init__(self) -> None:
        self.vendored = Vendored()
        self.known: dict[Any, Defined] = {}
        self.texts: dict[str, Callable[[], str]] = {}  # of definitions, by name
        self.modules: dict[Any, str] = {}  # the classes of modules of pools
        self.programs: dict[str, Any] = {}  # pools as nodes of the program
        self.whole_pools: set[Any] = set()  # pools that need a `Pool` instead of a list, by tree and path

    # ------------------------------------------------------------ trees

    def build_tree(self, graph: Graph, layout: Layout, shared: Tree | None = None) -> Tree:
        """Build the tree of a model or of a pool's module. `shared` holds what all modules of the pool share."""
        weights = (weight for weight in weights_of(graph) if shared is None or not weight.shared)
        tree = Tree(weights, self.vendored, lambda key: self.known[key].name)
        self.add_graph(tree, graph, layout, shared)
        return tree

    def add_graph(self, tree: Tree, graph: Graph, layout: Layout, shared: Tree | None = None) -> None:
        """Add the layers, pools and parameters of a graph to a tree."""
        known: dict[str, Any] = dict(layout.programs)
        for part in graph.parts():
            programs = known
            if part.scan is not None:
                inner = known[part.scan.name].region.graph
                programs = Layout(part.graph, inner, part.scan.region.results, part.scan).programs
                known |= programs
            for node in part.graph:
                if isinstance(node, PoolNode) and node.name not in tree.leaves:
                    self.programs.setdefault(node.name, programs[node.name])
                    tree.kinds[node.name] = "pool"
                    tree.pools.append((node, programs[node.name]))
                    if self._build_shared_tree(node).leaves:
                        tree.sharing[node.name] = node.size
                    tree.leaves[node.name] = partial(self._pool, tree, node, programs[node.name])
                elif isinstance(node, RouteNode) and part.graph.router_of(node).weights:
                    self._leaf(tree, part.graph.router_of(node).name, part.graph.signature(node).constructor())
                elif isinstance(node, OpNode) and node.op.all_weights():
                    path, positional, named = part.graph.signature(node).constructor()
                    if node.op.is_array:
                        tree.kinds.setdefault(node.owner, nn.Parameter)
                        tree.leaves.setdefault(node.owner, partial(parameter, tree.weights[node.owner]))
                        continue
                    if shared is not None and any(weight.shared for weight in node.op.all_weights()):
                        tree.borrowing.add(node.owner)
                        given = name(shared.access(node.owner, "", "shared"))
                        path, named = resolve(path).Own, {}
                        positional = [given, part.graph.signature(node).axes["code_width"]]
                    self._leaf(tree, node.owner, (path, positional, named))

    def _leaf(self, tree: Tree, path: str, made: Made) -> None:
        tree.kinds.setdefault(path, resolve(made[0]) if isinstance(made[0], str) else made[0])
        tree.leaves.setdefault(path, partial(self.instantiate, made))

    def instantiate(self, made: Made) -> str:
        """Write the call that constructs a module."""
        of, positional, named = made
        of = resolve(of) if isinstance(of, str) else of
        takes = {each.name: each.default for each in _parameters(of)}
        given = [*zip(takes, positional, strict=False), *named.items()]
        said, skipped = list[str](), False
        is_plain = of.__module__.startswith("modgraph.") and of.__name__ in PLAIN
        is_ours = not of.__module__.startswith("torch") and of.__name__ not in PLAIN
        for at, (key, value) in enumerate(given):
            default = takes.get(key, inspect.Parameter.empty)
            if default is not inspect.Parameter.empty and default == value and type(default) is type(value):
                skipped = True
                continue
            by_name = skipped or key in named or (is_ours and at > 0)
            text = ast.unparse(value) if isinstance(value, ast.expr) else literal(value)
            said.append(f"{key}={text}" if by_name else text)
        return f"{f'nn.{of.__name__}' if is_plain else self.vendored.name_of(of)}({', '.join(said)})"

    # ------------------------------------------------------------ definitions

    def compute_key(self, writer: Writer, body: Body) -> Any:
        """Compute the key of a call's class: its definition and its use. Calls with equal keys share one class."""
        assert body.call is not None
        layout, takes = writer.layout, writer.layout.list_arguments(body)
        guarded = [each.node in layout.optional for each in takes] if layout.has_guard(body) else []
        used = (layout.list_result_places(body), tuple(map(layout.is_bare, takes)), tuple(guarded), writer.inside)
        return layout.definitions[body].name, used, writer.tree.describe_content(body.call.weights)

    def has_class(self, writer: Writer, body: Body) -> bool:
        """Whether a call has its own class or function. If not, its lines are inlined."""
        assert body.call is not None
        tree, root, path = writer.tree, writer.root, body.call.weights
        borrows = any(each.startswith(f"{path}.") for each in tree.borrowing)  # only a pool's module receives these
        if borrows or path in tree.leaves or path == root or f"{root}.".startswith(f"{path}."):
            return False
        if not tree.find_weights_below(path):
            return True
        key = self.compute_key(writer, body)
        return bool(tree.instances.setdefault(path, key) == key)

    def define(self, caller: Writer, body: Body) -> Defined:
        """Define the class or function of a call."""
        assert body.call is not None
        key, call, layout = self.compute_key(caller, body), body.call, caller.layout
        if key in self.known:
            return self.known[key]
        defined = self.known[key] = Defined(holds=bool(caller.tree.find_weights_below(call.weights)))
        writer = Writer(self, layout, caller.tree, call.weights, caller.inside)
        lines, takes, results = writer.lines, layout.list_arguments(body), layout.results(body)
        items = writer.items(body, results)
        given = {each: lines.fresh_name("x" if len(takes) == 1 else lines.word(each)) for each in takes}
        for each, argument in given.items():
            lines.give(each, argument)
        optional = (f"{argument} is not None" for each, argument in given.items() if each.node in layout.optional)
        write_items(writer, items, " and ".join(optional) if layout.has_guard(body) else "")
        lines.line(f"return {', '.join(ast.unparse(lines.read(each)) for each in results)}")
        paths = outside(layout, body)
        defined.borrowed = tuple(map(paths.index, writer.borrowed))
        arguments = [*given.values(), *writer.borrowed.values()]
        forward = function("forward", ["self", *arguments], lines.lines)
        speaks = any(isinstance(each, ast.Name) and each.id == "self" for each in ast.walk(ast.parse(forward)))
        defined.is_function = not defined.holds and not speaks
        if defined.is_function:
            outer = [call.outer.definition] if call.kind == "round" and call.outer else []
            defined.name = free("_".join([*outer, call.definition]), self.texts)
            self.texts[defined.name] = lambda: function(defined.name, arguments, lines.lines)
        else:
            defined.name = self.add(class_name(call.definition), lambda name: self.class_(name, writer, forward))
        return defined

    def add(self, name: str, text: Callable[[str], str]) -> str:
        """Reserve a free name like `name` for a definition. `text` renders it at the end."""
        known = (f"{name}{at if at > 1 else ''}" for at in count(1))
        found = next(each for each in known if each not in self.texts and each not in reserve_names())
        self.texts[found] = partial(text, found)
        return found

    def class_(
        self, name: str, writer: Writer, forward: str, doc: str = "", more: Sequence[str] = (), given: str = ""
    ) -> str:
        """Write the text of a class."""
        tree, root = writer.tree, writer.root
        init = [*tree.write_members(root), *(f"self.{name} = {call}" for name, call in writer.helpers.items())]
        init += [*tree.write_initialisers(root), *more]
        lines = [*textwrap.wrap(f'"""{prose(doc)}"""', LINE - 4, break_long_words=False), ""] if doc else []
        if init:
            lines += [function("__init__", [f"self{given}"], ["super().__init__()", *init]), ""]
        return f"class {name}(nn.Module):\n" + textwrap.indent("\n".join([*lines, forward]), "    ")

    # ------------------------------------------------------------ pools

    def _pool(self, tree: Tree, node: PoolNode, program: PoolNode) -> str:
        names = self.define_modules(node, program)
        shared, given = self._build_shared_tree(node), ""
        if shared.leaves:
            given = f"shared_{len(tree.after)}" if tree.after or tree.borrowing else "shared"
            tree.after[node.name] = given
            tree.before += [f"{given} = {shared.write_container('')}", *shared.write_initialisers("", given)]
        calls = ", ".join(f"{each}({given})" for each in names)
        if node.is_homogeneous:
            calls = f"{names[0]}({given}) for _ in range({node.size})"
        if (id(tree), node.name) not in self.whole_pools:
            return f"nn.ModuleList([{calls}])"
        ranks = {"rank": len(node.message.shape), "result_rank": len(node.result.shape)}
        settings = [f"{key}={value}" for key, value in ranks.items() if value != 1]
        return f"{self.vendored.name_of(Pool)}({', '.join([f'[{calls}]', *settings])})"

    def _build_shared_tree(self, node: PoolNode) -> Tree:
        """Build the tree of what all modules of a pool share."""
        region = node.region(0).graph
        tree = Tree((weight for weight in weights_of(region) if weight.shared and node.is_homogeneous), self.vendored)
        for each in region.nodes_of(OpNode) if node.is_homogeneous else ():
            if any(weight.shared for weight in each.op.all_weights()):
                path, positional, named = region.signature(each).constructor()
                self._leaf(tree, each.owner, (resolve(path).Shared, positional, named))
        return tree

    def define_modules(self, node: PoolNode, program: Any) -> list[str]:
        """Define the class of each module; a homogeneous pool has one class."""
        return [self._module_class(node, region, program.regions[at].graph) for at, region in enumerate(node.regions)]

    def define_pools(self, tree: Tree) -> None:
        """Define the classes of pools that no route reaches."""
        for node, program in tree.pools:
            self.define_modules(node, program)

    def _module_class(self, node: PoolNode, region: Region, program: Graph) -> str:
        word, shared = last_word(node.name), self._build_shared_tree(node)
        content = tuple((each.name, each.shape, each.initial, each.scale) for each in weights_of(region.graph))
        key = (word, region, program, content, bool(shared.leaves))
        if key not in self.modules:
            layout = Layout(region.graph, program, region.results)
            tree = self.build_tree(region.graph, layout, shared if shared.leaves else None)
            writer = Writer(self, layout, tree, "", inside=not region.graph.nodes_of(RouteNode))
            forward = self._module_forward(writer, region, len(node.message.shape))
            self.define_pools(tree)
            shapes = [writer.shape(each, "...") for each in (Result(region.arguments[0]), region.results[0])]
            doc, given = f"One module of {word}: {' to '.join(shapes)}.", ", shared" if shared.leaves else ""
            text = partial(self.class_, writer=writer, forward=forward, doc=doc, given=given)
            self.modules[key] = self.add(class_name(word), text)
        return self.modules[key]

    def _module_forward(self, writer: Writer, region: Region, rank: int) -> str:
        """Write the `forward` of a module. A module with routes flattens all axes before its message into one."""
        lines, argument, (result, *_) = writer.lines, Result(region.arguments[0]), region.results
        lines.taken |= {"lead", "y"}
        items = writer.items(writer.layout.root, [result])
        given = lines.fresh_name(argument.node)
        lines.give(argument, given)
        if not writer.inside:
            lines.line(f"lead = {given}.shape[:-{rank}]" if rank else f"lead = {given}.shape")
            lines.line(f"{given} = {given}.reshape(-1, *{given}.shape[{-rank if rank else f'{given}.dim()'}:])")
        lines.left[argument] += writer.layout.is_bare(result)
        write_items(writer, items)
        value = writer.value(result)
        said = expand(value, name(given), rank, writer.inside) if value.is_bare else value.said
        if writer.inside:
            lines.line(f"return {ast.unparse(said)}")
        else:
            if not isinstance(said, ast.Name):
                lines.line(f"y = {ast.unparse(said)}")
            y = said.id if isinstance(said, ast.Name) else "y"
            lines.line(f"return {y}.reshape(*lead, *{y}.shape[1:])")
        return function("forward", ["self", given], lines.lines)


def function(name: str, given: Sequence[str], lines: Iterable[str]) -> str:
    """Write a function with these lines as its body."""
    return f"def {name}({', '.join(given)}):\n" + textwrap.indent("\n".join(lines), "    ")


def _parameters(of: type) -> list[inspect.Parameter]:
    """List the parameters of a constructor: those of the first base without `*args`."""
    signatures = ([*inspect.signature(base).parameters.values()] for base in of.__mro__ if base is not object)
    return next((each for each in signatures if not any(one.kind is one.VAR_POSITIONAL for one in each)), [])
