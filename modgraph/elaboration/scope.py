"""Which names mean what, where; and how nodes and weights get their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from modgraph.diagnostics import Span


@dataclass(eq=False, repr=False)
class Scope:
    """Names of one body, inside the scope of the body around it.

    `path` prefixes the names of weights, `node_path` those of nodes: they differ inside a module, whose weights stand
    below the module and whose nodes stand below the statement that uses it. `suffix` tells iterations of a `for`
    apart. A body is a model's or a block's; loops and branches lie within one. `ended` are names that were bound in
    inner bodies only, with the kind of body; `arguments` say where what the names of parameters stand for is given;
    `routers` are the definitions of a file.
    """

    path: str = ""
    node_path: str = ""
    outer: Scope | None = None
    suffix: str = ""
    frozen: bool = False
    is_body: bool = True
    names: dict[str, Any] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, Span] = field(default_factory=dict)
    routers: dict[str, Any] = field(default_factory=dict)
    bindings: dict[str, int] = field(default_factory=dict)

    def nest(self, path: str = "", suffix: str = "", frozen: bool = False) -> Scope:
        """A scope within the same body: an iteration with a path or suffix of its own, a branch without."""
        paths = join(self.path, path), join(self.node_path, path)
        found = Scope(*paths, self, self.suffix + suffix, self.frozen or frozen, is_body=False)
        if not path and not suffix:
            found.bindings = self.bindings
        return found

    @property
    def body(self) -> Scope:
        """The scope of the whole body that this one lies in."""
        return self if self.is_body or self.outer is None else self.outer.body

    def chain(self) -> Iterator[Scope]:
        """This scope and those around it, from the inside."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def chain_in_body(self) -> Iterator[Scope]:
        """This scope and those around it in the same body."""
        for scope in self.chain():
            yield scope
            if scope.is_body:
                return

    def find(self, name: str, wanted: Callable[[Any], bool] = lambda value: True) -> Any | None:
        """The innermost thing of a name that is wanted, or None."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names and wanted(scope.names[name]):
                return scope.names[name]
            scope = scope.outer
        return None

    def find_router(self, name: str) -> Any | None:
        """The definition of a router that the file of this scope has or imports."""
        return next((scope.routers[name] for scope in self.chain() if name in scope.routers), None)

    def bound(self, name: str) -> Any | None:
        """What a name is bound to in this body, or None."""
        return next((scope.names[name] for scope in self.chain_in_body() if name in scope.names), None)

    def declare(self, name: str, value: Any) -> None:
        self.names[name] = value

    def end(self, names: Iterable[str], body: str) -> None:
        """Remember the names that were bound in an inner body, which ends here."""
        self.ended |= dict.fromkeys(names, body)

    def find_argument(self, name: str) -> Span | None:
        """Where the argument stands that a name means here, if it is a parameter's and an argument was given."""
        return next((scope.arguments.get(name) for scope in self.chain() if name in scope.names), None)

    def rebind(self, name: str, value: Any) -> None:
        """Bind a value: where the name is bound already in this body, or else here."""
        next((scope for scope in self.chain_in_body() if name in scope.names), self).names[name] = value

    def weight_path(self, name: str) -> str:
        """Where the weights of a thing declared here stand."""
        return join(self.path, name) + self.suffix

    def member_of_body(self, name: str) -> Naming:
        """How the inline ops of a member are called that the whole body has once, wherever it stands."""
        return Naming(join(self.body.node_path, name), join(self.body.path, name), self)

    def next_binding(self, name: str, is_member: bool = False) -> Naming:
        """How the inline ops of a statement are called: below `x`, and below `x2` where x is bound a second time. The
        key of a member, `s.0`, tells iterations apart: no suffix does."""
        suffix = "" if is_member else self.suffix
        self.bindings[name] = self.bindings.get(name, 0) + 1
        numbered = ordinal(name, self.bindings[name])
        paths = join(self.node_path, numbered + suffix), join(self.path, numbered + suffix)
        return Naming(*paths, self, numbered if numbered != name else None, join(self.node_path, name + suffix))


@dataclass(eq=False, repr=False)
class Naming:
    """Names for the nodes of one statement, and for the weights they own.

    `shifting` is the numbered name that a statement inserted before this one would change; `plain` is the path of the
    nodes without the number.
    """

    node: str
    owner: str
    scope: Scope
    shifting: str | None = None
    plain: str = ""
    counts: dict[str, int] = field(default_factory=dict)

    def next(self, word: str, label: str | None = None) -> tuple[str, str]:
        """The next node of a word (`linear`, then `linear2`): its name, and the owner of its weights."""
        if label is not None:
            local = label + self.scope.suffix
            return join(self.scope.node_path, local), join(self.scope.path, local)
        self.counts[word] = self.counts.get(word, 0) + 1
        local = ordinal(word, self.counts[word])
        return join(self.node, local), join(self.owner, local)

    def shorter(self, name: str) -> tuple[str, str]:
        """A name of `next` without what the statement binds, and without the number of that."""
        if not name.startswith(f"{self.node}."):
            return name, name
        word = name[len(self.node) + 1 :]
        return join(self.scope.node_path, word), join(self.plain or self.node, word)


def join(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name


def ordinal(word: str, count: int) -> str:
    return word if count == 1 else f"{word}{count}"
