"""Scopes, which map names to entities, and the names of nodes and weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from modgraph.diagnostics import Span


@dataclass(eq=False, repr=False)
class Scope:
    """The names of one body, inside the scope of the enclosing body.

    `path` prefixes the names of weights, and `node_path` those of nodes. They differ inside a module, whose weights lie
    below the module and whose nodes lie below the statement that uses it. `suffix` distinguishes iterations of a `for`.
    A body is that of a model or a block; loops and branches belong to it. `ended` holds names that only inner bodies
    bound, with the kind of body. `arguments` holds the spans of the arguments of parameters, `routers` the
    definitions of a file, and `axis_words` the strings by which a body called axes before it declared any of that name.
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
    axis_words: set[str] = field(default_factory=set)

    def nest(self, path: str = "", suffix: str = "", frozen: bool = False) -> Scope:
        """Return a scope within the same body: with a path or suffix for an iteration, without for a branch."""
        paths = join(self.path, path), join(self.node_path, path)
        found = Scope(*paths, self, self.suffix + suffix, self.frozen or frozen, is_body=False)
        if not path and not suffix:
            found.bindings = self.bindings
        return found

    @property
    def body(self) -> Scope:
        """The scope of the enclosing body."""
        return self if self.is_body or self.outer is None else self.outer.body

    def chain(self) -> Iterator[Scope]:
        """Iterate over this scope and the enclosing ones, from the inside."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def chain_in_body(self) -> Iterator[Scope]:
        """Iterate over this scope and the enclosing ones of the same body."""
        for scope in self.chain():
            yield scope
            if scope.is_body:
                return

    def find(self, name: str, wanted: Callable[[Any], bool] = lambda value: True) -> Any | None:
        """Find the innermost entity of a name that satisfies a predicate, or None."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names and wanted(scope.names[name]):
                return scope.names[name]
            scope = scope.outer
        return None

    def find_router(self, name: str) -> Any | None:
        """Find a router that the file of this scope defines or imports."""
        return next((scope.routers[name] for scope in self.chain() if name in scope.routers), None)

    def find_bound(self, name: str) -> Any | None:
        """Find the entity that this body binds to a name, or None."""
        return next((scope.names[name] for scope in self.chain_in_body() if name in scope.names), None)

    def declare(self, name: str, value: Any) -> None:
        self.names[name] = value

    def end(self, names: Iterable[str], body: str) -> None:
        """Record the names that an inner body bound, which ends here."""
        self.ended |= dict.fromkeys(names, body)

    def find_argument(self, name: str) -> Span | None:
        """Find the span of the argument of a parameter, if the name refers to one."""
        return next((scope.arguments.get(name) for scope in self.chain() if name in scope.names), None)

    def rebind(self, name: str, value: Any) -> None:
        """Bind a value in the scope of this body that has the name already, or else here."""
        next((scope for scope in self.chain_in_body() if name in scope.names), self).names[name] = value

    def weight_path(self, name: str) -> str:
        """Return the path of the weights of a thing declared here."""
        return join(self.path, name) + self.suffix

    def name_member(self, name: str) -> Naming:
        """Name the inline ops of a member that exists once in the whole body."""
        return Naming(join(self.body.node_path, name), join(self.body.path, name), self)

    def next_binding(self, name: str, is_member: bool = False) -> Naming:
        """Name the inline ops of a statement: below `x`, and below `x2` if x is bound a second time.

        The key of a member, `s.0`, distinguishes iterations without a suffix.
        """
        suffix = "" if is_member else self.suffix
        self.bindings[name] = self.bindings.get(name, 0) + 1
        numbered = ordinal(name, self.bindings[name])
        paths = join(self.node_path, numbered + suffix), join(self.path, numbered + suffix)
        return Naming(*paths, self, numbered if numbered != name else None, join(self.node_path, name + suffix))


@dataclass(eq=False, repr=False)
class Naming:
    """Names for the nodes of one statement, and for the weights they own.

    `shifting` is a numbered name that a statement inserted before would change; `plain` is the path of the nodes
    without the number.
    """

    node: str
    owner: str
    scope: Scope
    shifting: str | None = None
    plain: str = ""
    counts: dict[str, int] = field(default_factory=dict)

    def next(self, word: str, label: str | None = None) -> tuple[str, str]:
        """Return the names of the next node of a word (`linear`, then `linear2`) and of the owner of its weights."""
        if label is not None:
            local = label + self.scope.suffix
            return join(self.scope.node_path, local), join(self.scope.path, local)
        self.counts[word] = self.counts.get(word, 0) + 1
        local = ordinal(word, self.counts[word])
        return join(self.node, local), join(self.owner, local)

    def shorter(self, name: str) -> tuple[str, str]:
        """Return the name of a node without the name that the statement binds, and without its number."""
        if not name.startswith(f"{self.node}."):
            return name, name
        word = name[len(self.node) + 1 :]
        return join(self.scope.node_path, word), join(self.plain or self.node, word)


def join(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name


def ordinal(word: str, count: int) -> str:
    return word if count == 1 else f"{word}{count}"
