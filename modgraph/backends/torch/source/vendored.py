"""Vendored definitions: library functions and classes as text, with all dependencies, for a standalone file.

A class keeps only the methods that something calls. Definitions with equal names get the name of their file as suffix.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module, util
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from modgraph import nn as library
from modgraph.backends.errors import NoSource
from modgraph.backends.torch import labelled
from modgraph.diagnostics import ModgraphError

FALSE = ("torch.compiler.is_exporting()", "is_opaque()", "_process.shard is not None")  # in files of their own
Place = tuple[str, str]  # the module of a definition, and its name in that module
Meaning = ast.stmt | Place | str  # a definition, a re-export's place, or an import line


@cache
def module(name: str) -> dict[str, Meaning]:
    """List the definitions and imports of a module, by name. Raises `ModgraphError` if the module has no source."""
    found = util.find_spec(name)
    if found is None or found.origin is None or not found.origin.endswith(".py"):
        raise ModgraphError([NoSource(path=name, reason="it has no Python source")])
    names: dict[str, Meaning] = {}
    for node in _Specialised().visit(ast.parse(Path(found.origin).read_text(encoding="utf-8"))).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {**dict(_imports(node)), **names}
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            names[node.name] = names.get(node.name, node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            names |= dict.fromkeys(_names(node, ast.Store), node)
    return names


@cache
def definitions() -> frozenset[str]:
    """List the names of all definitions that may be vendored."""
    homes = [f"modgraph.nn.{each.name}" for each in iter_modules(library.__path__) if not each.ispkg]
    return frozenset(name for home in (*homes, labelled.__name__) for name in vars(import_module(home)))


class _Specialised(ast.NodeTransformer):
    """Removes code that runs only during an export, or with several processes."""

    def visit(self, node: ast.AST) -> Any:
        match self.generic_visit(node):
            case ast.Call() | ast.Compare() as test if ast.unparse(test) in FALSE:
                return ast.Constant(False)
            case ast.BoolOp(ast.And(), [ast.Constant(False), *_]):
                return ast.Constant(False)
            case ast.BoolOp(ast.Or(), [ast.Constant(False), other]) | ast.BoolOp(
                ast.Or(), [other, ast.Constant(False)]
            ):
                return other
            case ast.If(ast.Constant(False), orelse=[]):
                return None
            case other:
                return other


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Place | str]]:
    for alias in node.names:
        home, name = (alias.name, "") if isinstance(node, ast.Import) else (str(node.module), alias.name)
        line = ast.unparse(type(node)(**{**vars(node), "names": [alias]}))
        is_plain = home.partition(".")[0] in ("torch", *sys.stdlib_module_names)
        if home != "__future__":
            yield (alias.asname or alias.name).partition(".")[0], line if is_plain else (home, name)


@dataclass
class Vendored:
    """The definitions that a file needs. `calls` has the names of the methods that the file calls."""

    calls: set[str] = field(default_factory=set)
    roots: dict[Place, None] = field(default_factory=dict)

    def name_of(self, value: Any) -> str:
        """Return the name of a class or function in the file, and vendor it unless it is torch's."""
        home, name = value.__module__, value.__qualname__
        if home.partition(".")[0] == "torch":
            return f"nn.{name}" if home.startswith("torch.nn.modules") else f"{home}.{name}"
        self.roots[_home((home, name))] = None
        return str(name)

    def text(self) -> tuple[list[str], list[str]]:
        """Import lines, and definitions in an order in which Python can evaluate them."""
        before, kept = -1, dict[Place, ast.stmt]()
        while before != len(self.calls):
            before, kept = len(self.calls), self._collect()
        meanings = [_meaning(place[0], name) for place, node in kept.items() for name in _names(node)]
        names: dict[Place, str] = {}
        for home, name in kept:
            known = (name, *(f"{name}_{home.rpartition('.')[2]}{at or ''}" for at in range(len(kept))))
            names[home, name] = next(each for each in known if each not in names.values())
        parts = [ast.unparse(_Renamed(place, names).visit(deepcopy(kept[place]))) for place in _sort(kept)]
        return sorted({each for each in meanings if isinstance(each, str)}), list(dict.fromkeys(parts))

    def _collect(self) -> dict[Place, ast.stmt]:
        """Collect definitions and their dependencies; classes lose methods that nothing calls."""
        waiting, kept = [*self.roots], dict[Place, ast.stmt]()
        while waiting:
            place = waiting.pop()
            if place not in kept:
                kept[place] = node = _part(place, self.calls)
                self.calls |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
                waiting += _needs(place, _names(node))
        return kept


class _Renamed(ast.NodeTransformer):
    """Renames dependencies to their names in the file, and inlines a result that is named only for its type."""

    def __init__(self, place: Place, names: dict[Place, str]) -> None:
        self.place, self.names = place, names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        meant = _meaning(self.place[0], node.id)
        return ast.Name(self.names.get(meant, node.id) if isinstance(meant, tuple) else node.id, node.ctx)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self.names.get((self.place[0], node.name), node.name)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self.names[self.place] if node.name == self.place[1] else node.name
        match node.body[-2:]:
            case [ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value), ast.Return(ast.Name(id=same))]:
                node.body[-2:] = [ast.Return(value)] if name == same else node.body[-2:]
        return self.generic_visit(node)


def _home(place: Place) -> Place:
    """Find the place of a definition itself, behind re-exports."""
    home, name = place
    match module(home).get(name):
        case ast.stmt():
            return home, name
        case tuple() as passed_on:
            return _home(passed_on)
    value = getattr(import_module(home), name, None)
    if value is None or getattr(value, "__module__", home) == home:
        raise ModgraphError([NoSource(path=f"{home}.{name}", reason="its definition is not found")])
    return _home((value.__module__, value.__qualname__))


def _meaning(home: str, name: str) -> Place | str | None:
    """Find the place of the definition that a name means in a module, or its import line; None for builtins."""
    meant = module(home).get(name)
    if isinstance(meant, ast.stmt):
        return _home((home, name))
    if not isinstance(meant, tuple):
        return meant
    package = meant[0].partition(".")[0]
    if package not in ("modgraph", home.partition(".")[0]):
        reason = f"it needs {package}, and such a file imports torch alone"
        raise ModgraphError([NoSource(path=home, reason=reason)])
    return _home(meant)


def _needs(place: Place, names: Collection[str]) -> list[Place]:
    """Find the definitions to which the names in a definition refer."""
    return [meant for meant in (_meaning(place[0], name) for name in names) if isinstance(meant, tuple)]


def _names(part: ast.AST, context: type[ast.expr_context] = ast.expr_context) -> list[str]:
    return [each.id for each in ast.walk(part) if isinstance(each, ast.Name) and isinstance(each.ctx, context)]


def _part(place: Place, calls: Collection[str]) -> ast.stmt:
    """Return a definition; a class keeps its head and the members that something calls."""
    node = module(place[0])[place[1]]
    if not isinstance(node, ast.ClassDef):
        return node  # type: ignore[return-value]
    bases = getattr(import_module(place[0]), place[1]).__mro__[1:]
    calls = {*calls, *(name for base in bases if base.__module__.partition(".")[0] == "torch" for name in dir(base))}
    body = list[ast.stmt]()
    for each in node.body:
        names = [each.name] if isinstance(each, ast.FunctionDef) else []
        names = _names(each, ast.Store) if isinstance(each, ast.Assign) else names
        if not names or any(name in calls or (name.startswith("__") and name.endswith("__")) for name in names):
            body.append(each)
    return ast.ClassDef(node.name, node.bases, node.keywords, body or [ast.Pass()], node.decorator_list)


def _sort(kept: dict[Place, ast.stmt]) -> list[Place]:
    """Sort definitions so that each follows those that Python evaluates when it reads it."""
    found: dict[Place, None] = {}

    def visit(place: Place) -> None:
        for need in _needs(place, _eager_names(kept[place])) if place not in found else ():
            if need in kept and need != place:
                visit(need)
        found[place] = None

    for place in kept:
        visit(place)
    return [*found]


def _eager_names(node: ast.stmt) -> list[str]:
    """Find the names that Python evaluates when it reads a definition."""
    match node:
        case ast.FunctionDef():
            parts = [*node.decorator_list, *node.args.defaults]
        case ast.ClassDef():
            inner = [name for each in node.body for name in _eager_names(each)]
            return [*inner, *(name for each in (*node.bases, *node.decorator_list) for name in _names(each))]
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            parts = [value]
        case _:
            parts = []
    return [name for each in parts for name in _names(each)]
