"""Which names mean what, where; and how nodes and weights get their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from modgraph.elaboration.entities import Entity


class Scope:
    """Names of one body, inside the scope of the body around it. `path` prefixes the names of weights."""

    def __init__(self, path: str = "", outer: Scope | None = None) -> None:
        self.path = path
        self.outer = outer
        self.names: dict[str, Any] = {}
        self.bindings: dict[str, int] = outer.bindings if outer is not None and outer.path == path else {}

    def inside(self, path: str | None = None) -> Scope:
        """A scope within; with a path of its own, an iteration."""
        return Scope(self.path if path is None else join(self.path, path), self)

    def find(self, name: str, wanted: Callable[[Any], bool] = lambda value: True) -> Any | None:
        """The innermost thing of a name that is wanted, or None."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names and wanted(scope.names[name]):
                return scope.names[name]
            scope = scope.outer
        return None

    def declare(self, name: str, value: Any) -> None:
        self.names[name] = value

    def rebind(self, name: str, value: Any) -> None:
        """Bind a value: where the name is bound already, further out too, or else here."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                scope.names[name] = value
                return
            scope = scope.outer
        self.names[name] = value

    def visible(self, wanted: Callable[[Any], bool] = lambda value: True) -> list[str]:
        outer = self.outer.visible(wanted) if self.outer is not None else []
        return [name for name, value in self.names.items() if wanted(value)] + outer

    def next_binding(self, name: str) -> str:
        """The name under which a statement's inline ops stand: `x`, and `x2` where x is bound a second time."""
        self.bindings[name] = self.bindings.get(name, 0) + 1
        return ordinal(name, self.bindings[name])


class Naming:
    """Names for the nodes of one statement, and for the weights they own.

    Inside a module the two differ: its nodes stand below the statement that uses it, its weights below the module.
    """

    def __init__(self, node: str, owner: str, scope_path: str) -> None:
        self.node = node
        self.owner = owner
        self.scope_path = scope_path
        self.counts: dict[str, int] = {}

    def next(self, word: str, label: str | None = None) -> tuple[str, str]:
        """The next node of a word (`linear`, then `linear2`): its name, and the owner of its weights."""
        if label is not None:
            name = join(self.scope_path, label)
            return name, name
        self.counts[word] = self.counts.get(word, 0) + 1
        local = ordinal(word, self.counts[word])
        return join(self.node, local), join(self.owner, local)

    def module(self, name: str, path: str) -> Naming:
        """Names inside a module that this statement uses."""
        node, _ = self.next(name)
        return Naming(node, path, path)


def join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def ordinal(word: str, count: int) -> str:
    return word if count == 1 else f"{word}{count}"


def is_callable(value: Any) -> bool:
    """What may stand right of an arrow."""
    from modgraph.elaboration.entities import Bound, ModuleEntity, PoolEntity, Template

    return isinstance(value, ModuleEntity | PoolEntity | Template | Bound)


def is_value(value: Any) -> bool:
    return not isinstance(value, Entity) or not is_callable(value)
