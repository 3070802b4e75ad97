"""Classes of a file: what they hold, under the names of a model's state dict, and what they compute."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from torch import nn

from modgraph.backends.torch.construct import attribute, child, resolve
from modgraph.backends.torch.source.copied import Copied
from modgraph.backends.torch.source.names import class_name, is_attribute, is_plain_name, numbered, reserved
from modgraph.backends.torch.source.quote import literal, prose
from modgraph.ir import GraphWeight
from modgraph.nn.pool import Pool

NAME = "\0"  # placeholder of a class's name in its text; no text holds this character
LINE = 112

Made = tuple[Any, Sequence[Any], Mapping[str, Any]]  # a class, or the path of one, and what makes an instance


@dataclass
class File:
    """A file that is being written: what is copied into it, and its classes, each once."""

    copied: Copied = field(default_factory=Copied)
    classes: dict[str, str] = field(default_factory=dict)  # by text, the name
    weights: Mapping[str, GraphWeight] = field(default_factory=dict)  # of the model, by name
    by_index: set[Any] = field(default_factory=set)  # pools whose modules are taken by index
    rules: Mapping[type, Callable[..., None]] = field(default_factory=dict)  # that write what is no op
    hold: Callable[..., None] = lambda home, graph, prefix: None  # lets a class hold all weights of a graph

    def add(self, text: str, called: str) -> str:
        """The name of a class of this text, which stands in the file once."""
        if text not in self.classes:
            name = class_name(called)
            taken = {*self.classes.values(), *reserved()}
            known = (f"{name}{at if at > 1 else ''}" for at in itertools.count(1))
            self.classes[text] = next(each for each in known if each not in taken)
        return self.classes[text]

    def made(self, made: Made) -> str:
        """The call that makes a module."""
        of, positional, named = made
        of = resolve(of) if isinstance(of, str) else of
        takes = _takes(of)
        told = [(each.name, value, each.default) for each, value in zip(takes, positional, strict=False)]
        others = {each.name: each.default for each in takes}
        told += [(key, value, others.get(key, inspect.Parameter.empty)) for key, value in named.items()]
        said, skipped = list[str](), False
        is_ours = not of.__module__.startswith("torch")
        for key, value, default in told:
            if default is not inspect.Parameter.empty and default == value and type(default) is type(value):
                skipped = True
                continue
            text = ast.unparse(value) if isinstance(value, ast.expr) else literal(value)
            by_name = skipped or key in named or (is_ours and len(told) > 1 and key != told[0][0])
            said.append(f"{key}={text}" if by_name else text)
        return f"{self.copied.name_of(of)}({', '.join(said)})"


class Class:
    """A class that is being written. `root` has what it holds, under the same names, those of the model's weights
    behind a prefix."""

    def __init__(self, file: File, root: nn.Module, prefix: str = "") -> None:
        self.prefix = prefix
        self.file = file
        self.root = root
        self.members: dict[str, str] = {}  # what makes each module or parameter, by path
        self.helpers: dict[str, str] = {}  # modules without weights, by attribute
        self.scopes: list[str] = []  # parts that hold all that stands below their names
        self.after: list[str] = []  # further lines of `__init__`

    def held(self, path: str, make: Callable[[], str]) -> str:
        """The expression for something that the class holds under a path."""
        if path not in self.members and not self.covers(path):
            self.members[path] = make()
        return self.at(path)

    def covers(self, path: str) -> bool:
        """Whether one of its parts holds what stands under a path."""
        return path.startswith(tuple(self.scopes))

    def at(self, path: str) -> str:
        """The expression for what stands under a path."""
        return at_path("self", self.root, path)

    def helper(self, called: str, made: str) -> str:
        """The expression for a module without weights."""
        known = next((name for name, each in self.helpers.items() if each == made), None)
        if known is None:
            taken = {*self.helpers, *self.root._modules, *self.root._parameters, *dir(nn.Module()), "renamed"}
            known = next(each for each in numbered(called) if each not in taken)
            self.helpers[known] = made
        return f"self.{known}"

    def text(self, doc: str, methods: Iterable[str], base: str = "nn.Module", given: str = "") -> str:
        """The class, with `NAME` in place of its name."""
        head = [f"class {NAME}({base}):", *_doc(doc, 4), ""]
        init = [f"    def __init__(self{given}):", "        super().__init__()"]
        others = attributes_of(self.root, self.tree())
        if others:
            keep = self.file.copied.needed(("modgraph.nn.names", "keep_names"))
            init += [f"        {keep}(self, {literal(others)})"]
        init += [line for key, value in self.tree().items() for line in self._set(key, value)]
        init += [f"        self.{name} = {made}" for name, made in self.helpers.items()]
        init += [f"        {line}" for line in self.after]
        if len(init) > 2:
            head += [*init, ""]
        body = "\n\n".join(methods)
        return "\n".join([*head, *(f"    {line}" if line else "" for line in body.splitlines())])

    def tree(self) -> dict[str, Any]:
        """What makes the members, by parts of their paths."""
        return _tree(self.members)

    def _set(self, key: str, value: Any) -> list[str]:
        target = member_expression("self", self.root, key)
        return laid_out(f"        {target} = ", self._made(value, child(self.root, key)), 8)

    def _made(self, value: Any, module: Any) -> Any:
        """The text that makes what stands under a name, or a call and its arguments."""
        if isinstance(value, str):
            return value
        parts = {attribute(module, key): self._made(each, child(module, key)) for key, each in value.items()}
        others = attributes_of(module, value)
        kind = "Renamed" if others else "Named"
        named = self.file.copied.needed(("modgraph.backends.torch.source.alone", kind))
        if is_list(module):
            runs = [(one, len([*same])) for one, same in groupby(parts.values())]
            if len(runs) < len(parts) and all(isinstance(one, str) for one, _ in runs):
                lists = [f"[{one} for _ in range({times})]" if times > 1 else f"[{one}]" for one, times in runs]
                return f"nn.ModuleList({' + '.join(lists)})"
            return ("nn.ModuleList([", [("", one) for one in parts.values()], "])")
        first = [("", literal(others))] if others else []
        if all(map(is_plain_name, parts)):
            return (f"{named}(", [*first, *((f"{key}=", one) for key, one in parts.items())], ")")
        opened = f"{named}({literal(others)}, **{{" if others else f"{named}(**{{"
        return (opened, [(f"{literal(key)}: ", one) for key, one in parts.items()], "})")


def _takes(of: type) -> list[inspect.Parameter]:
    """What a constructor takes, as the first base says it by name."""
    signatures = ([*inspect.signature(base).parameters.values()] for base in of.__mro__ if base is not object)
    return next((each for each in signatures if not any(one.kind is one.VAR_POSITIONAL for one in each)), [])


def at_path(said: str, root: nn.Module, path: str) -> str:
    """The expression for what stands under a path below something that is said so."""
    here = root
    *homes, last = path.split(".")
    for part in homes:
        said, here = member_expression(said, here, part), child(here, part)  # type: ignore[assignment]
    return member_expression(said, here, last)


def is_list(module: nn.Module) -> bool:
    """Whether a namespace holds modules that are numbered from 0, and nothing else."""
    names = [*module._modules]
    return bool(names) and names == [str(at) for at in range(len(names))] and not module._parameters


def member_expression(said: str, here: nn.Module, name: str) -> str:
    """The expression for the member of a module under a name; `said` is the expression for the module."""
    if name.isdigit() and isinstance(here, Pool):
        return f"{said}.expert({name})"
    if name.isdigit() and is_list(here):
        return f"{said}[{name}]"
    member = attribute(here, name)
    kind = "_parameters" if member in here._parameters else "_modules"
    return f"{said}.{member}" if is_attribute(member) else f"{said}.{kind}[{literal(member)}]"


def attributes_of(module: nn.Module, names: Iterable[str]) -> dict[str, str]:
    """The attributes of a module by name, where the two differ."""
    return {name: attribute(module, name) for name in names if attribute(module, name) != name}


def _tree(members: Mapping[str, str]) -> dict[str, Any]:
    """Paths as dictionaries in dictionaries."""
    tree: dict[str, Any] = {}
    for path, made in members.items():
        *homes, last = path.split(".")
        here = tree
        for part in homes:
            here = here.setdefault(part, {})
        here[last] = made
    return tree


def laid_out(head: str, made: Any, indent: int) -> list[str]:
    """Lines of a call, on one where it fits."""
    if isinstance(made, str):
        return [head + made]
    opened, parts, closed = made
    one = head + _flat(made)
    if len(one) <= LINE:
        return [one]
    inner = " " * (indent + 4)
    lines = [head + opened]
    for before, part in parts:
        told = laid_out(inner + before, part, indent + 4)
        lines += [*told[:-1], told[-1] + ","]
    return [*lines, " " * indent + closed]


def _flat(made: Any) -> str:
    if isinstance(made, str):
        return made
    opened, parts, closed = made
    inside = ", ".join(before + _flat(part) for before, part in parts)
    return f"{opened}{inside}{closed}"


def _doc(text: str, indent: int) -> list[str]:
    lines = textwrap.wrap(f'"""{prose(text)}"""', LINE - indent, break_long_words=False)
    return [" " * indent + line for line in lines]


def first(names: Sequence[str], path: str) -> int:
    """The place of the first name at or below a path."""
    return next((at for at, name in enumerate(names) if f"{name}.".startswith(f"{path}.")), len(names))
