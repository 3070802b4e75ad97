"""Definitions of a library with all that they need, as text: what a file must hold to stand by itself.

What is kept of a class are the methods that something calls. Definitions of one name from several files are told apart
by the name of their file.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module, util
from itertools import count
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from modgraph.backends.errors import NoSource
from modgraph.diagnostics import ModgraphError

STANDALONE = "modgraph.backends.torch.source.standalone"  # definitions that stand in such files alone
STANDS_IN = {f"modgraph.nn.{name}": STANDALONE for name in ("array", "device", "shard", "slices", "scan", "pool")}
OTHERS = (STANDALONE, "modgraph.backends.torch.padding", "modgraph.backends.torch.labelled")
Place = tuple[str, str]  # the module of a definition, and its name there


@dataclass(frozen=True)
class Module:
    """The definitions of a module by name, and by the names it uses what it imports: a definition elsewhere, or a line
    that imports it."""

    defined: dict[str, ast.stmt]
    imported: dict[str, Place | str]


@cache
def module(name: str) -> Module:
    """A module, read. Raises `ModgraphError` where it has no source."""
    found = util.find_spec(name)
    if found is None or found.origin is None or not found.origin.endswith(".py"):
        raise ModgraphError([NoSource(path=name, reason="it has no Python source")])
    defined: dict[str, ast.stmt] = {}
    imported: dict[str, Place | str] = {}
    tree = _WithoutExports().visit(ast.parse(Path(found.origin).read_text(encoding="utf-8")))
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imported |= dict(_imports(node))
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            defined.setdefault(node.name, node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            defined |= dict.fromkeys(_names(node, ast.Store), node)
    return Module(defined, imported)


@cache
def definitions() -> frozenset[str]:
    """The names of all definitions in the files from which the source copies."""
    import modgraph.nn as library

    names = [f"modgraph.nn.{each.name}" for each in iter_modules(library.__path__) if not each.ispkg]
    return frozenset(name for each in (*names, *OTHERS) for name in vars(import_module(each)))


class _WithoutExports(ast.NodeTransformer):
    """Takes away what is done only while a model is exported by modgraph."""

    def visit_If(self, node: ast.If) -> ast.stmt | None:
        return None if ast.unparse(node.test) == "torch.compiler.is_exporting()" and not node.orelse else node


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Place | str]]:
    for alias in node.names:
        known = alias.asname or alias.name
        home, name = (alias.name, "") if isinstance(node, ast.Import) else (str(node.module), alias.name)
        if home != "__future__":
            own = home.partition(".")[0] in ("torch", *sys.stdlib_module_names)
            yield (
                known.partition(".")[0],
                ast.unparse(type(node)(**{**vars(node), "names": [alias]})) if own else (home, name),
            )


@dataclass
class Copied:
    """What a text needs. `calls` are the names of methods that it calls."""

    calls: set[str] = field(default_factory=set)
    roots: dict[Place, None] = field(default_factory=dict)

    def name_of(self, value: Any) -> str:
        """What a class or function is called in the file; it is copied, torch's own is imported."""
        home, name = value.__module__, value.__qualname__
        if home.partition(".")[0] == "torch":
            return f"nn.{name}" if home.startswith("torch.nn.modules") else f"{home}.{name}"
        return self.needed((home, name))

    def needed(self, place: Place) -> str:
        """What a definition is called in the file, into which it is copied."""
        self.roots[_home(place)] = None
        return place[1]

    def text(self) -> tuple[list[str], list[str]]:
        """Lines that import, and definitions, each after those that it is made of."""
        kept = self._kept()
        imports = {
            line for place, node in kept.items() for line in map(_meaning(place), _names(node)) if isinstance(line, str)
        }
        names: dict[Place, str] = {}
        for place in kept:
            known = (place[1], *(f"{place[1]}_{place[0].rpartition('.')[2]}{at or ''}" for at in range(len(kept))))
            names[place] = next(each for each in known if each not in names.values())
        parts = [ast.unparse(_Renamed(place, names).visit(deepcopy(kept[place]))) for place in _ordered(kept)]
        return sorted(imports), list(dict.fromkeys(parts))

    def _kept(self) -> dict[Place, ast.stmt]:
        """Definitions, of classes what something calls."""
        for _ in count():
            before, waiting, kept = len(self.calls), [*self.roots], dict[Place, ast.stmt]()
            while waiting:
                place = waiting.pop()
                if place not in kept:
                    kept[place] = _part(place, self.calls)
                    self.calls |= {each.attr for each in ast.walk(kept[place]) if isinstance(each, ast.Attribute)}
                    waiting += [need for need in map(_meaning(place), _names(kept[place])) if isinstance(need, tuple)]
            if before == len(self.calls):
                break
        return kept


class _Renamed(ast.NodeTransformer):
    """Gives what a definition needs the names that these have in the file, and returns without a name what has one for
    its type alone."""

    def __init__(self, place: Place, names: dict[Place, str]) -> None:
        self.place, self.names = place, names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        meant = _meaning(self.place)(node.id)
        return ast.Name(self.names.get(meant, node.id) if isinstance(meant, tuple) else node.id, node.ctx)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self.names.get((self.place[0], node.name), node.name)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self.names.get((self.place[0], node.name), node.name) if node.name == self.place[1] else node.name
        match node.body[-2:]:
            case [ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value), ast.Return(ast.Name(id=same))]:
                node.body[-2:] = [ast.Return(value)] if name == same else node.body[-2:]
        return self.generic_visit(node)


def _home(place: Place) -> Place:
    """Where a definition stands in itself, whoever passes it on."""
    home, name = STANDS_IN.get(place[0], place[0]), place[1]
    found = module(home)
    if name in found.defined:
        return home, name
    passed_on = found.imported.get(name)
    if isinstance(passed_on, tuple):
        return _home(passed_on)
    value = getattr(import_module(home), name, None)
    if value is None or getattr(value, "__module__", home) == home:
        raise ModgraphError([NoSource(path=f"{home}.{name}", reason="its definition is not found")])
    return _home((value.__module__, value.__qualname__))


def _meaning(place: Place) -> Any:
    """What names mean beside a definition: definitions, or lines that import them; None for Python's own."""
    home, found = place[0], module(place[0])

    def meaning(name: str) -> Place | str | None:
        if name in found.defined:
            return _home((home, name))
        meant = found.imported.get(name)
        if not isinstance(meant, tuple):
            return meant
        if meant[0].partition(".")[0] not in ("modgraph", home.partition(".")[0]):
            reason = f"it needs {meant[0].partition('.')[0]}, and such a file imports torch alone"
            raise ModgraphError([NoSource(path=home, reason=reason)])
        return _home(meant)

    return meaning


def _names(part: ast.AST, context: type[ast.expr_context] = ast.expr_context) -> list[str]:
    return [each.id for each in ast.walk(part) if isinstance(each, ast.Name) and isinstance(each.ctx, context)]


def _part(place: Place, calls: Collection[str]) -> ast.stmt:
    """A definition, of a class its head and those of its body that something calls."""
    node = module(place[0]).defined[place[1]]
    if not isinstance(node, ast.ClassDef):
        return node
    bases = getattr(import_module(place[0]), place[1]).__mro__[1:]
    torchs = {name for base in bases if base.__module__.partition(".")[0] == "torch" for name in dir(base)}
    kept = [each for each in node.body if _is_kept(each, {*calls, *torchs})]
    return ast.ClassDef(node.name, node.bases, node.keywords, kept or [ast.Pass()], node.decorator_list)


def _is_kept(part: ast.stmt, calls: Collection[str]) -> bool:
    names = (
        [part.name]
        if isinstance(part, ast.FunctionDef)
        else _names(part, ast.Store)
        if isinstance(part, ast.Assign)
        else []
    )
    return not names or any(name in calls or (name.startswith("__") and name.endswith("__")) for name in names)


def _ordered(kept: dict[Place, ast.stmt]) -> list[Place]:
    """Definitions in an order in which what is made when the file is read comes after what it is made of."""
    found: dict[Place, None] = {}

    def visit(place: Place) -> None:
        if place not in found:
            needs = map(_meaning(place), _at_once(kept[place]))
            for need in needs:
                if isinstance(need, tuple) and need in kept and need != place:
                    visit(need)
            found[place] = None

    for place in kept:
        visit(place)
    return [*found]


def _at_once(node: ast.stmt) -> list[str]:
    """The names that are looked up when a definition is read."""
    match node:
        case ast.FunctionDef():
            parts = [*node.decorator_list, *node.args.defaults]
        case ast.ClassDef():
            inner = [name for each in node.body for name in _at_once(each)]
            return [*inner, *(name for each in (*node.bases, *node.decorator_list) for name in _names(each))]
        case ast.Assign() | ast.AnnAssign():
            parts = [node.value] if node.value is not None else []
        case _:
            parts = []
    return [name for each in parts for name in _names(each)]
