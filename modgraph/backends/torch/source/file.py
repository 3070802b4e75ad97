"""A model as one file of PyTorch: each definition of its program a class or a function."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any

from torch import nn

from modgraph.backends.torch.construct import resolve
from modgraph.backends.torch.model import Model
from modgraph.backends.torch.source.calls import Defined, outside, write_definition
from modgraph.backends.torch.source.copied import Copied
from modgraph.backends.torch.source.function import Lines
from modgraph.backends.torch.source.layout import Layout
from modgraph.backends.torch.source.members import Tree, parameter
from modgraph.backends.torch.source.model import write_model
from modgraph.backends.torch.source.names import arguments, class_name, free, reserved
from modgraph.backends.torch.source.pools import define_pools, pool_of, shared_parts
from modgraph.backends.torch.source.text import literal, prose
from modgraph.backends.torch.source.routes import route_of
from modgraph.backends.torch.source.scans import scan_of
from modgraph.backends.torch.source.text import LINE, laid_out
from modgraph.backends.torch.source.writer import Rules, Writer
from modgraph.declare import shown_value
from modgraph.ir import Body, Graph, OpNode, PoolNode, RouteNode, ScanNode, outline, weights_of
from modgraph.version import VERSION

Made = tuple[Any, Sequence[Any], Mapping[str, Any]]  # a class, or the path of one, and what makes an instance
HEAD = '''"""{title}

Written by modgraph {version}; it needs torch alone, and takes modgraph's weights:
model = {name}(); model.load_state_dict(safetensors.torch.load_file("weights.safetensors")); {call}
B is the axis of examples, "..." stands for any axes before those of one message.
"""

from __future__ import annotations

'''


def source_of(model: Model) -> str:
    """The file: helpers, the classes of definitions, and last that of the model.

    Raises `ModgraphError` for a layer that cannot be copied.
    """
    return File(model).text()


class File:
    """A file that is being written: what is copied into it, and its definitions, each after those that it uses."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.copied = Copied()
        self.rules: Rules = {RouteNode: route_of, ScanNode: scan_of}
        self.known: dict[Any, Defined] = {}
        self.texts: dict[str, Callable[[], str]] = {}  # of definitions, by name
        self.modules: dict[Any, str] = {}  # the classes of modules of pools
        self.programs: dict[str, PoolNode] = {}  # pools as the program has them
        self.whole_pools: set[Any] = set()  # pools that need more than a list: of a tree, the path

    def text(self) -> str:
        graph, name = self.model.computed, class_name(str(self.model.graph.name))
        layout = Layout(graph, outline(graph).body, [*graph.outputs.values(), *graph.losses.values()])
        tree = self.tree(graph, layout)
        self.hold_others(tree)
        writer = Writer(self, layout, tree, "", Lines(layout.word))
        lines = write_model(writer, self.model.graph)
        define_pools(self, tree)
        own = self.add(name, lambda name: self.class_(name, writer, lines, _title(self.model), [*tree.frozen()]))
        parts = [each() for each in self.texts.values()]
        self.copied.calls |= {
            each.attr for part in parts for each in ast.walk(ast.parse(part)) if isinstance(each, ast.Attribute)
        }
        imports, definitions = self.copied.text()
        definitions, parts = ([*map(laid_out, texts)] for texts in (definitions, parts))
        head = _head(self.model.graph, own) + _imports(imports, [*definitions, *parts])
        return "\n\n\n".join([head, *definitions, *parts]) + "\n"

    # ------------------------------------------------------------ trees

    def tree(self, graph: Graph, layout: Layout, shared: Tree | None = None) -> Tree:
        """What a model, or the module of a pool, holds; `shared` is what the modules of the pool have in common."""
        weights = (weight for weight in weights_of(graph) if shared is None or not weight.shared)
        tree = Tree(weights, self.copied, lambda key: self.known[key].name)
        self._hold(tree, graph, layout, shared)
        return tree

    def hold_others(self, tree: Tree) -> None:
        """Let a model hold the weights of what passes took away."""
        graph = self.model.graph
        weights = {weight.name: weight for weight in weights_of(graph)}
        if weights.keys() != tree.weights.keys():
            tree.weights = weights | tree.weights
            self._hold(tree, graph, Layout(graph, outline(graph).body, ()))

    def _hold(self, tree: Tree, graph: Graph, layout: Layout, shared: Tree | None = None) -> None:
        for part in graph.parts():
            programs = layout.programs
            if part.scan is not None:
                scan: Any = layout.programs[part.scan.name]
                programs = Layout(part.graph, scan.region.graph, part.scan.region.results, part.scan).programs
            for node in part.graph:
                if isinstance(node, PoolNode) and node.name not in tree.leaves:
                    program: Any = programs[node.name]
                    self.programs.setdefault(node.name, program)
                    tree.kinds[node.name] = "pool"
                    tree.pools.append((node, program))
                    if shared_parts(self, node).leaves:
                        tree.sharing[node.name] = node.size
                    tree.leaves[node.name] = partial(pool_of, self, tree, node, program)
                elif isinstance(node, RouteNode) and part.graph.router_of(node).weights:
                    self.leaf(tree, part.graph.router_of(node).name, part.graph.signature(node).constructor())
                elif isinstance(node, OpNode) and node.op.all_weights():
                    self._op_leaf(tree, part.graph, node, shared)

    def _op_leaf(self, tree: Tree, graph: Graph, node: OpNode, shared: Tree | None) -> None:
        path, positional, named = graph.signature(node).constructor()
        if node.op.is_array:
            tree.kinds.setdefault(node.owner, nn.Parameter)
            tree.leaves.setdefault(node.owner, partial(parameter, tree.weights[node.owner]))
        elif shared is not None and any(weight.shared for weight in node.op.all_weights()):
            said = ast.parse(shared.at(node.owner, "", "shared"), mode="eval").body
            width = graph.signature(node).axes["code_width"]
            self.leaf(tree, node.owner, (resolve(path).Own, [said, width], {}))
        else:
            self.leaf(tree, node.owner, (path, positional, named))

    def leaf(self, tree: Tree, path: str, made: Made) -> None:
        """A layer at a path."""
        tree.kinds.setdefault(path, resolve(made[0]) if isinstance(made[0], str) else made[0])
        tree.leaves.setdefault(path, partial(self.made, made))

    # ------------------------------------------------------------ definitions

    def key(self, layout: Layout, tree: Tree, body: Body, inside: bool) -> Any:
        """What calls have in common that are of one class: the definition, and how it is used."""
        assert body.call is not None
        takes = layout.takes(body)
        guarded = [each.node in layout.optional for each in takes] if layout.guards(body) else []
        used = (layout.places(body), tuple(map(layout.is_bare, takes)), tuple(guarded), inside)
        return layout.definitions[body].name, used, tree.content(body.call.weights)

    def has_class(self, writer: Writer, body: Body) -> bool:
        """Whether a call is of a class or function; else its lines stand where it is."""
        assert body.call is not None
        tree, root, path = writer.tree, writer.root, body.call.weights
        if path in tree.leaves or path == root or f"{root}.".startswith(f"{path}."):
            return False
        if not tree.below(path):
            return True
        key = self.key(writer.layout, tree, body, writer.inside)
        return bool(tree.instances.setdefault(path, key) == key)

    def define(self, layout: Layout, tree: Tree, body: Body, inside: bool) -> Defined:
        """The class or function of a call."""
        assert body.call is not None
        key, path = self.key(layout, tree, body, inside), body.call.weights
        if key not in self.known:
            defined = self.known[key] = Defined(holds=bool(tree.below(path)))
            writer = Writer(self, layout, tree, path, Lines(layout.word, "..." if inside else "B"), inside)
            given = write_definition(writer, body)
            paths = outside(layout, body)
            defined.borrowed = tuple(map(paths.index, writer.borrowed))
            given += writer.borrowed.values()
            words = [body.call.definition]
            words += [body.call.outer.definition] if body.call.kind == "round" and body.call.outer else []
            lines = function("forward", ["self", *given], writer.lines.lines)
            speaks = any(isinstance(each, ast.Name) and each.id == "self" for each in ast.walk(ast.parse(lines)))
            defined.is_function = not defined.holds and not speaks
            if defined.is_function:
                defined.name = free("_".join(reversed(words)), self.texts)
                self.texts[defined.name] = lambda: function(defined.name, given, writer.lines.lines)
            else:
                defined.name = self.add(class_name(words[0]), lambda name: self.class_(name, writer, lines))
        return self.known[key]

    def add(self, name: str, text: Callable[[str], str]) -> str:
        """The name of a definition like this one, whose text is made at the end."""
        known = (f"{name}{at if at > 1 else ''}" for at in count(1))
        found = next(each for each in known if each not in self.texts and each not in reserved())
        self.texts[found] = partial(text, found)
        return found

    def class_(
        self, name: str, writer: Writer, forward: str, doc: str = "", more: Sequence[str] = (), given: str = ""
    ) -> str:
        """The text of a class."""
        tree, root = writer.tree, writer.root
        init = [*tree.members(root), *(f"self.{name} = {made}" for name, made in writer.helpers.items())]
        init += [*tree.starts(root), *more]
        head = [f"class {name}(nn.Module):", *(f"    {line}" if line else "" for line in _doc(doc))]
        if init:
            head += [
                f"    def __init__(self{given}):",
                "        super().__init__()",
                *(f"        {each}" for each in init),
                "",
            ]
        return "\n".join([*head, *(f"    {line}" if line else "" for line in forward.splitlines())])

    def made(self, made: Made) -> str:
        """The call that makes a module."""
        of, positional, named = made
        of = resolve(of) if isinstance(of, str) else of
        takes = _takes(of)
        told = [(each.name, value, each.default) for each, value in zip(takes, positional, strict=False)]
        others = {each.name: each.default for each in takes}
        told += [(key, value, others.get(key, inspect.Parameter.empty)) for key, value in named.items()]
        said, skipped = list[str](), False
        is_ours = not of.__module__.startswith("torch") and of.__name__ not in PLAIN
        for key, value, default in told:
            if default is not inspect.Parameter.empty and default == value and type(default) is type(value):
                skipped = True
                continue
            text = ast.unparse(value) if isinstance(value, ast.expr) else literal(value)
            by_name = skipped or key in named or (is_ours and len(told) > 1 and key != told[0][0])
            said.append(f"{key}={text}" if by_name else text)
        name = (
            f"nn.{of.__name__}"
            if of.__module__.startswith("modgraph.") and of.__name__ in PLAIN
            else self.copied.name_of(of)
        )
        return f"{name}({', '.join(said)})"


PLAIN = ("Linear", "Conv2d", "GroupNorm")


def function(name: str, given: Sequence[str], lines: Sequence[str]) -> str:
    """A function of these lines."""
    return "\n".join([f"def {name}({', '.join(given)}):", *(f"    {line}" if line else "" for line in lines)])


def _takes(of: type) -> list[inspect.Parameter]:
    """What a constructor takes, as the first base says it by name."""
    signatures = ([*inspect.signature(base).parameters.values()] for base in of.__mro__ if base is not object)
    return next((each for each in signatures if not any(one.kind is one.VAR_POSITIONAL for one in each)), [])


def _doc(text: str) -> list[str]:
    return [*textwrap.wrap(f'"""{prose(text)}"""', LINE - 4, break_long_words=False), ""] if text else []


def _head(graph: Graph, name: str) -> str:
    called = arguments(graph)
    inputs = [called[key] for key, each in graph.input_types.items() if each.dtype != "length"]
    said = ", ".join(f"{key}={shown_value(value)}" for key, value in graph.parameters.items())
    title = textwrap.wrap(prose(f"{graph.name}({said})"), LINE, subsequent_indent="    ", break_long_words=False)
    return HEAD.format(title="\n".join(title), version=VERSION, name=name, call=f"output = model({', '.join(inputs)})")


def _title(model: Model) -> str:
    outputs = ", ".join(f"{name}: {model.graph.type_of(result)}" for name, result in model.graph.outputs.items())
    return f"{', '.join(f'{name}: {type_}' for name, type_ in model.graph.input_types.items())} to {outputs}."


def _imports(lines: list[str], texts: list[str]) -> str:
    """The lines that import what the texts speak of."""
    whole = "\n".join(texts)
    own = {
        "import math": r"\bmath\.",
        "import torch": r"\btorch\.",
        "import torch.nn.functional as F": r"\bF\.",
        "from torch import Tensor": r"\bTensor\b",
        "from torch import nn": r"\bnn\.",
    }
    found = {line for line, mark in own.items() if re.search(mark, whole)} | set(lines)
    froms: dict[str, list[str]] = {}
    for line in sorted(each for each in found if each.startswith("from ")):
        source, _, what = line.partition(" import ")
        froms.setdefault(source, []).append(what)
    found = {each for each in found if each.startswith("import ")}
    found |= {f"{source} import {', '.join(what)}" for source, what in froms.items()}
    groups = [[line for line in sorted(found, key=_plain_first) if ("torch" in line) is own] for own in (False, True)]
    return "\n\n".join("\n".join(group) for group in groups if group)


def _plain_first(line: str) -> tuple[bool, str]:
    return not line.startswith("import"), line
