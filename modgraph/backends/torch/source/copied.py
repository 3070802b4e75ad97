"""Definitions of a library with all that they need, as text: what a file must hold to stand by itself.

What is kept of a class are the methods that something calls. Definitions of one name from several files are told apart
by the name of their file.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module, util
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from modgraph.backends.errors import NoSource
from modgraph.diagnostics import ModgraphError

REMARK = re.compile(r"\s*# (type: ignore|noqa).*$", re.MULTILINE)
STANDS_IN = {  # files that know of processes and of exports, and what says the same without
    f"modgraph.nn.{name}": "modgraph.backends.torch.source.standalone"
    for name in ("array", "device", "shard", "slices", "scan", "pool")
}
Place = tuple[str, str]  # the module of a definition, and its name there


@dataclass(frozen=True)
class Module:
    """The source of a module: its definitions by name, and by the names it uses what it imports."""

    name: str
    text: str
    defined: dict[str, ast.stmt]
    imported: dict[str, Place | str]  # a definition elsewhere, or a line that imports it
    cut: frozenset[int]  # lines that are for exports alone


@cache
def module(name: str) -> Module:
    """A module, read. Raises `ModgraphError` where it has no source."""
    found = util.find_spec(name)
    if found is None or found.origin is None or not found.origin.endswith(".py"):
        raise ModgraphError([NoSource(path=name, reason="it has no Python source")])
    text = Path(found.origin).read_text(encoding="utf-8")
    defined: dict[str, ast.stmt] = {}
    imported: dict[str, Place | str] = {}
    tree = _WithoutExports()
    for node in tree.visit(ast.parse(text)).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imported |= dict(_imports(node))
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            defined.setdefault(node.name, node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in (each for one in targets for each in ast.walk(one)):
                if isinstance(target, ast.Name):
                    defined[target.id] = node
    return Module(name, text, defined, imported, frozenset(tree.cut))


@cache
def definitions() -> frozenset[str]:
    """The names of all definitions in the files from which the source copies."""
    import modgraph.nn as library

    names = [f"modgraph.nn.{each.name}" for each in iter_modules(library.__path__) if not each.ispkg]
    names += ["modgraph.backends.torch.source.standalone", "modgraph.backends.torch.padding"]
    names.append("modgraph.backends.torch.labelled")
    return frozenset(name for each in names for name in vars(import_module(each)))


class _WithoutExports(ast.NodeTransformer):
    """Takes away what is done only while a model is exported by modgraph."""

    def __init__(self) -> None:
        self.cut: set[int] = set()

    def visit_If(self, node: ast.If) -> ast.stmt | None:
        if ast.unparse(node.test) != "torch.compiler.is_exporting()" or node.orelse:
            return node
        self.cut |= {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}
        return None


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Place | str]]:
    for alias in node.names:
        known = alias.asname or alias.name
        renamed = f" as {alias.asname}" if alias.asname else ""
        if isinstance(node, ast.Import):
            line = f"import {alias.name}{renamed}"
            yield known.partition(".")[0], line if _stands_alone(alias.name) else (alias.name, "")
        elif node.module in ("__future__", None):
            continue
        elif _stands_alone(str(node.module)):
            yield known, f"from {node.module} import {alias.name}{renamed}"
        else:
            yield known, (str(node.module), alias.name)


def _stands_alone(name: str) -> bool:
    """Whether a file of its own may import a module: those of torch and of Python."""
    top = name.partition(".")[0]
    return top == "torch" or top in sys.stdlib_module_names


@dataclass
class Copied:
    """What a text needs: definitions, imports. `calls` are the names of methods that it calls."""

    calls: set[str] = field(default_factory=set)
    roots: dict[Place, None] = field(default_factory=dict)

    def name_of(self, value: Any) -> str:
        """What a class or function is called in the file; it is copied, torch's own is imported."""
        home, name = value.__module__, value.__qualname__
        if home.partition(".")[0] == "torch":
            return _name_in_torch(home, name)
        return self.needed((home, name))

    def needed(self, place: Place) -> str:
        """What a definition is called in the file, into which it is copied."""
        self.roots[_home(place)] = None
        return place[1]

    def text(self) -> tuple[list[str], list[str]]:
        """Lines that import, and definitions, each after those that it is made of."""
        kept = self._kept()
        renamed = _renamed(kept)
        imports = {line for place in kept for line in self._imports(place, kept[place])}
        parts = [self._said(place, kept[place], renamed) for place in _ordered(kept)]
        return sorted(imports), list(dict.fromkeys(parts))

    def _kept(self) -> dict[Place, list[ast.AST]]:
        """Definitions, each with the parts of it that are kept."""
        calls, kept = set(self.calls), dict[Place, list[ast.AST]]()
        while True:
            before = len(calls), {place: len(parts) for place, parts in kept.items()}
            waiting, kept = [*self.roots], {}
            while waiting:
                place = waiting.pop()
                if place in kept:
                    continue
                kept[place] = _parts(place, calls)
                for part in kept[place]:
                    calls |= {each.attr for each in ast.walk(part) if isinstance(each, ast.Attribute)}
                    waiting += [need for name in _names(part) if isinstance(need := _meant(place[0], name), tuple)]
            if before == (len(calls), {place: len(parts) for place, parts in kept.items()}):
                return kept

    def _imports(self, place: Place, parts: list[ast.AST]) -> Iterator[str]:
        for name in (name for part in parts for name in _names(part)):
            meant = _meant(place[0], name)
            if isinstance(meant, str):
                yield meant

    def _said(self, place: Place, parts: list[ast.AST], renamed: dict[Place, str]) -> str:
        """The text of a definition without the parts that are not kept."""
        home = module(place[0])
        node = home.defined[place[1]]
        lines = home.text.splitlines()
        left_out = home.cut | (_left_out(node, parts) if isinstance(node, ast.ClassDef) else set())
        decorated = min((each.lineno for each in getattr(node, "decorator_list", [])), default=node.lineno)
        told = [lines[at - 1] for at in range(decorated, (node.end_lineno or 0) + 1) if at not in left_out]
        while len(told) > 1 and not told[-1].strip():
            told.pop()
        text = REMARK.sub("", "\n".join(told))
        names = {name for part in parts for name in _names(part)} | {place[1]}
        others = {name: renamed[need] for name in names if (need := _meant(place[0], name)) in renamed}
        return _with_names(re.sub(r"\n\n\n+", "\n\n", text), {k: v for k, v in others.items() if k != v})


def _home(place: Place) -> Place:
    """Where a definition stands in itself, whoever passes it on."""
    home, name = STANDS_IN.get(place[0], place[0]), place[1]
    found = module(home)
    if name not in found.defined:
        passed_on = found.imported.get(name)
        if not isinstance(passed_on, tuple):
            value = getattr(import_module(home), name, None)
            if value is None or getattr(value, "__module__", home) == home:
                raise ModgraphError([NoSource(path=f"{home}.{name}", reason="its definition is not found")])
            return _home((value.__module__, value.__qualname__))
        return _home(passed_on)
    return home, name


def _meant(home: str, name: str) -> Place | str | None:
    """What a name means in a module: a definition, or a line that imports it; None for one of Python's own."""
    found = module(home)
    if name in found.defined:
        return _home((home, name))
    meant = found.imported.get(name)
    if not isinstance(meant, tuple):
        return meant
    if meant[0].partition(".")[0] not in ("modgraph", home.partition(".")[0]):
        reason = f"it needs {meant[0].partition('.')[0]}, and such a file imports torch alone"
        raise ModgraphError([NoSource(path=home, reason=reason)])
    return _home(meant)


def _names(part: ast.AST) -> list[str]:
    return [each.id for each in ast.walk(part) if isinstance(each, ast.Name)]


def _parts(place: Place, calls: set[str]) -> list[ast.AST]:
    """A definition, or of a class what stands in its head and those of its body that something calls."""
    node = module(place[0]).defined[place[1]]
    if not isinstance(node, ast.ClassDef):
        return [node]
    bases = getattr(import_module(place[0]), place[1]).__mro__[1:]
    ours = [*node.bases, *node.decorator_list]
    return [*ours, *(each for each in node.body if _is_kept(each, calls, bases))]


def _is_kept(part: ast.stmt, calls: set[str], bases: Iterable[type]) -> bool:
    names: list[str] = []
    if isinstance(part, ast.FunctionDef):
        names = [part.name]
    elif isinstance(part, ast.Assign):
        names = [each.id for each in part.targets if isinstance(each, ast.Name)]
    if not names:
        return True
    torchs = [base for base in bases if base.__module__.partition(".")[0] == "torch"]
    return any(name in calls or _is_special(name) or any(hasattr(base, name) for base in torchs) for name in names)


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _left_out(node: ast.ClassDef, parts: list[ast.AST]) -> set[int]:
    """The lines of a class that hold what is not kept, and the empty one before each."""
    found: set[int] = set()
    for each in node.body:
        if each not in parts:
            first = min([each.lineno, *(one.lineno for one in getattr(each, "decorator_list", []))])
            found |= {*range(first, (each.end_lineno or first) + 1)}
            found |= {first - 1} if isinstance(each, ast.FunctionDef) else set()
    return found


def _renamed(kept: Iterable[Place]) -> dict[Place, str]:
    """What each definition is called; those of one name are told apart by their file."""
    taken: dict[str, Place] = {}
    found: dict[Place, str] = {}
    for place in kept:
        name = place[1]
        if taken.setdefault(name, place) != place:
            name = f"{name}_{place[0].rpartition('.')[2]}"
            taken[name] = place
        found[place] = name
    return found


def _ordered(kept: dict[Place, list[ast.AST]]) -> list[Place]:
    """Definitions in an order in which what is made when the file is read comes before what it is made of."""
    found: dict[Place, None] = {}

    def visit(place: Place) -> None:
        if place in found:
            return
        node = module(place[0]).defined[place[1]]
        for name in _at_once(node):
            need = _meant(place[0], name)
            if isinstance(need, tuple) and need in kept and need != place:
                visit(need)
        found[place] = None

    for place in kept:
        visit(place)
    return [*found]


def _at_once(node: ast.stmt) -> list[str]:
    """The names that are looked up when a definition is read."""
    if isinstance(node, ast.FunctionDef):
        return [name for each in (*node.decorator_list, *node.args.defaults) for name in _names(each)]
    if isinstance(node, ast.ClassDef):
        inner = [name for each in node.body for name in _at_once(each)]
        return [*(name for each in (*node.bases, *node.decorator_list) for name in _names(each)), *inner]
    return _names(node.value) if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None else []


def _with_names(text: str, others: dict[str, str]) -> str:
    """A text with some names in place of others."""
    if not others:
        return text
    lines = text.splitlines(keepends=True)
    tokens = [*tokenize.generate_tokens(io.StringIO(text).readline)]
    for before, token in reversed([*zip([None, *tokens], tokens, strict=False)]):
        if token.type == tokenize.NAME and token.string in others and (before is None or before.string != "."):
            (row, start), (_, end) = token.start, token.end
            line = lines[row - 1]
            lines[row - 1] = f"{line[:start]}{others[token.string]}{line[end:]}"
    return "".join(lines)


def _name_in_torch(home: str, name: str) -> str:
    return f"nn.{name}" if home.startswith("torch.nn.modules") else f"{home}.{name}"
