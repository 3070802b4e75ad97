"""Which names mean what, where; and how nodes and weights get their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from modgraph.diagnostics import Span

MOST_SUGGESTED = 1000


class Scope:
    """Names of one body, inside the scope of the body around it.

    `path` prefixes the names of weights, `node_path` those of nodes: they differ inside a module, whose weights stand
    below the module and whose nodes stand below the statement that uses it. `suffix` tells iterations of a `for`
    apart. A `body` is a model's or a block's; loops and branches lie within one.
    """

    def __init__(
        self,
        path: str = "",
        node_path: str | None = None,
        outer: Scope | None = None,
        suffix: str = "",
        frozen: bool = False,
        body: bool = True,
    ) -> None:
        self.path = path
        self.node_path = path if node_path is None else node_path
        self.outer = outer
        self.suffix = suffix
        self.frozen = frozen
        self.is_body = body
        self.names: dict[str, Any] = {}
        self.ended: dict[str, str] = {}  # names that were bound in inner bodies only, with the kind of body
        self.arguments: dict[str, Span] = {}  # where what the names of parameters stand for is given
        self.routers: dict[str, Any] = {}  # definitions of routers, of a file
        same = not body and outer is not None and (outer.path, outer.suffix) == (path, suffix)
        self.bindings: dict[str, int] = outer.bindings if same and outer is not None else {}

    def inside(self, path: str = "", suffix: str = "", frozen: bool = False) -> Scope:
        """A scope within the same body: an iteration with a path or suffix of its own, a branch without."""
        return Scope(
            join(self.path, path),
            join(self.node_path, path),
            self,
            self.suffix + suffix,
            self.frozen or frozen,
            body=False,
        )

    @property
    def body(self) -> Scope:
        """The scope of the whole body that this one lies in."""
        return self if self.is_body or self.outer is None else self.outer.body

    @property
    def is_repeated(self) -> bool:
        """Whether it is, or lies in, an iteration of a loop of its body."""
        return (self.path, self.suffix) != (self.body.path, self.body.suffix)

    def without_suffix(self) -> Scope:
        """The same names, for a statement that tells iterations apart by an index of its own."""
        scope = self.inside()
        scope.suffix = ""
        return scope

    def chain(self) -> Iterator[Scope]:
        """This scope and those around it, from the inside."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def of_body(self) -> Iterator[Scope]:
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

    def router_names(self) -> list[str]:
        """The routers that the file of this scope defines or imports."""
        return [name for scope in self.chain() for name in scope.routers]

    def bound(self, name: str) -> Any | None:
        """What a name is bound to in this body, or None."""
        return next((scope.names[name] for scope in self.of_body() if name in scope.names), None)

    def declare(self, name: str, value: Any) -> None:
        self.names[name] = value

    def end(self, names: Iterable[str], body: str) -> None:
        """Remember the names that were bound in an inner body, which ends here."""
        self.ended |= dict.fromkeys(names, body)

    def body_of(self, name: str) -> str | None:
        """The kind of the inner body in which alone a name was bound, or None."""
        return next((scope.ended[name] for scope in self.of_body() if name in scope.ended), None)

    def declare_parameters(self, values: Mapping[str, Any], spans: Mapping[str, Span]) -> None:
        """Parameters of a definition, and where a use gave them."""
        self.names |= values
        self.arguments |= spans

    def given_at(self, name: str) -> Span | None:
        """Where the argument stands that a name means here, if it is a parameter's and an argument was given."""
        return next((scope.arguments.get(name) for scope in self.chain() if name in scope.names), None)

    def rebind(self, name: str, value: Any) -> None:
        """Bind a value: where the name is bound already in this body, or else here."""
        next((scope for scope in self.of_body() if name in scope.names), self).names[name] = value

    def visible(self, wanted: Callable[[Any], bool] = lambda value: True) -> list[str]:
        """The names to suggest for a misspelt one: of each scope the latest."""
        latest = (islice(reversed(scope.names.items()), MOST_SUGGESTED) for scope in self.chain())
        return [name for names in latest for name, value in names if wanted(value)]

    def weights_below(self, name: str) -> str:
        """Where the weights of a thing declared here stand."""
        return join(self.path, name) + self.suffix

    def next_member(self, name: str) -> Naming:
        """As `next_binding`, for a member `s.0`, whose key tells iterations apart: no suffix does."""
        naming = self.without_suffix().next_binding(name)
        naming.scope = self
        return naming

    def member_of_body(self, name: str) -> Naming:
        """How the inline ops of a member are called that the whole body has once, wherever it stands."""
        return Naming(join(self.body.node_path, name), join(self.body.path, name), self)

    def next_binding(self, name: str) -> Naming:
        """How the inline ops of a statement are called: below `x`, and below `x2` where x is bound a second time."""
        self.bindings[name] = self.bindings.get(name, 0) + 1
        numbered = ordinal(name, self.bindings[name])
        local = numbered + self.suffix
        shifting = numbered if numbered != name else None
        plain = join(self.node_path, name + self.suffix)
        return Naming(join(self.node_path, local), join(self.path, local), self, shifting, plain)


class Naming:
    """Names for the nodes of one statement, and for the weights they own.

    `shifting` is the numbered name that a statement inserted before this one would change; `plain` is the path of the
    nodes without the number.
    """

    def __init__(
        self, node: str, owner: str, scope: Scope, shifting: str | None = None, plain: str | None = None
    ) -> None:
        self.node = node
        self.plain = node if plain is None else plain
        self.owner = owner
        self.scope = scope
        self.shifting = shifting
        self.counts: dict[str, int] = {}

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
        return join(self.scope.node_path, word), join(self.plain, word)

    def module(self, word: str, path: str, frozen: bool) -> Naming:
        """Names inside a module that this statement uses."""
        node, _ = self.next(word)
        return Naming(node, path, Scope(path, node, frozen=frozen))


def join(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name


def ordinal(word: str, count: int) -> str:
    return word if count == 1 else f"{word}{count}"
