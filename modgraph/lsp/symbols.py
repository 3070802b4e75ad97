"""What the names of a text refer to: every occurrence of each symbol, by the syntax tree."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from modgraph.diagnostics import Span
from modgraph.syntax import ast
from modgraph.syntax.tokens import PlacedToken


class Kind(StrEnum):
    """What a symbol is, as editors name kinds."""

    MODEL = "model"
    BLOCK = "block"
    ROUTER_TYPE = "router type"
    PARAMETER = "parameter"
    INPUT = "input"
    TARGET = "target"
    MODULE = "module"
    POOL = "pool"
    ROUTER = "router"
    ARRAY = "array"
    VALUE = "value"
    KEY = "key"
    AXIS = "axis"
    ROUNDS = "rounds"


OF_KEYWORD = {"model": Kind.MODEL, "block": Kind.BLOCK, "router": Kind.ROUTER_TYPE}
CALLABLE = frozenset((Kind.MODULE, Kind.POOL, Kind.PARAMETER))  # kinds that can stand right of an arrow
GLOBAL = frozenset(OF_KEYWORD.values())  # kinds that other files can import


@dataclass(frozen=True)
class Symbol:
    """A name in a part of a file: of a definition, or the whole file for a definition itself.

    `loop` is where the loop or scan begins in which alone the name means this, or -1. Names in a definition that are
    equal are one symbol, so a rename of all of them never changes what a spec computes.
    """

    path: str
    definition: str
    name: str
    loop: int = -1


@dataclass(frozen=True)
class Occurrence:
    """A place at which a symbol is named; `record` says that the name alone stands for a record and its value."""

    span: Span
    symbol: Symbol
    kind: Kind
    declares: bool = False
    record: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Imported:
    """The definition that an imported name refers to, and the file that it stands in."""

    path: str
    definition: ast.Definition

    @property
    def symbol(self) -> Symbol:
        return Symbol(self.path, "", self.definition.name)


class Tokens:
    """The tokens of a text, to find the exact place of a name in a tree."""

    def __init__(self, tokens: Sequence[PlacedToken]) -> None:
        self.tokens = tokens
        self._offsets = [token.span.start for token in tokens]

    def iterate(self, start: int, end: int) -> Iterator[PlacedToken]:
        """The tokens between two offsets."""
        for at in range(bisect_left(self._offsets, start), len(self.tokens)):
            if self.tokens[at].span.end > end:
                return
            yield self.tokens[at]

    def find(self, name: str, start: int, end: int) -> Span | None:
        """The first token between two offsets that is a name."""
        return next((token.span for token in self.iterate(start, end) if token == name), None)

    def name_of(self, tree: ast.Tree, name: str, after_keyword: bool = False) -> Span | None:
        """The first token of a tree that is a name; with `after_keyword`, the tree's first token does not count."""
        inside = list(self.iterate(tree.span.start, tree.span.end))[after_keyword:]
        return next((token.span for token in inside if token == name), None)


def find_occurrences(
    file: ast.File, tokens: Sequence[PlacedToken], imports: Mapping[str, Imported]
) -> Iterator[Occurrence]:
    """Every occurrence of a symbol in a file. `imports` says what imported names refer to."""
    path, place = file.span.source.name, Tokens(tokens)
    known = dict(imports) | {each.name: Imported(path, each) for each in file.definitions}
    for statement in file.imports:
        for name in statement.names:
            span = place.name_of(statement, name)
            if name in imports and span is not None:
                yield Occurrence(span, imports[name].symbol, _kind_of(imports[name]))
    for definition in file.definitions:
        yield Occurrence(
            definition.name_span, Symbol(path, "", definition.name), _kind_of(known[definition.name]), True
        )
        yield from _Names(definition, path, place, known).walk()


def _kind_of(found: Imported) -> Kind:
    return OF_KEYWORD[found.definition.keyword]


def _terms(tree: ast.Tree) -> Iterator[ast.Name]:
    """The names that are called or applied in a tree itself."""
    match tree:
        case ast.Call(callee=ast.Name() as term) | ast.Stage(term=ast.Name() as term):
            yield term


Declared = tuple[str, Kind, Span | None]


class _Names:
    """The names of one definition."""

    def __init__(self, definition: ast.Definition, path: str, place: Tokens, known: Mapping[str, Imported]) -> None:
        self.definition, self.path, self.place, self.known = definition, path, place, known
        self.kinds: dict[str, Kind] = {}
        self.loops: dict[str, list[Span]] = {}  # the loops and scans that bind a name, where nothing else does
        declared = [
            *self._parameters(),
            *(each for tree in ast.walk(definition.body) for each in self._list_declared(tree)),
        ]
        for name, kind, _ in declared:
            self.kinds.setdefault(name, kind)
        bound = [each for tree in ast.walk(definition.body) for each in self._keys(tree)]
        for name, kind, _, _ in bound:
            self.kinds.setdefault(name, kind)
        others = {name for name, _, _ in declared}
        for name, _, _, loop in bound:
            if name not in others:
                self.loops.setdefault(name, []).append(loop)
        constants = {each.name for each in definition.parameters if isinstance(each.default, ast.Literal)}
        callable_ = {name for name, kind in self.kinds.items() if kind in CALLABLE and name not in constants}
        self.ops = {  # by place, names of ops and blocks that are those of values too
            term.span.start
            for tree in ast.walk(definition.body)
            for term in _terms(tree)
            if term.name in self.kinds and term.name not in callable_
        }
        self.declared = {span.start for _, _, span in declared if span is not None}
        self.declared |= {span.start for _, _, span, _ in bound if span is not None}

    def walk(self) -> Iterator[Occurrence]:
        """Every occurrence in the definition."""
        for name, _, span in self._parameters():
            yield from self._occurrence(name, span)
        for tree in ast.walk(self.definition):
            yield from self._walk_tree(tree)

    def _walk_tree(self, tree: ast.Tree) -> Iterator[Occurrence]:
        for name, _, span in self._list_declared(tree):
            yield from self._occurrence(name, span)
        for name, _, span, _ in self._keys(tree):
            yield from self._occurrence(name, span)
        match tree:
            case ast.Name(name=name):
                yield from self._occurrence(name, tree.span)
            case ast.Next(name=name):
                yield from self._occurrence(name, tree.name_span)
            case ast.Grow(pool=pool, router=router):
                yield from self._occurrence(pool, self.place.name_of(tree, pool, True))
                after = self.place.find("by", tree.span.start, tree.span.end)
                start = after.end if after is not None else tree.span.end
                yield from self._occurrence(router, self.place.find(router, start, tree.span.end))
            case ast.GrowBy(pool=pool):
                yield from self._occurrence(pool, self.place.name_of(tree, pool, True))
            case ast.RecordItem(name=name, value=None):
                yield from self._occurrence(name, self.place.name_of(tree, name), record=True)
            case ast.Call(callee=ast.Name(name=name)) if name in self.known and name not in self.kinds:
                yield from self._arguments(tree, self.known[name])
            case ast.Literal(value=str(word)) if self.kinds.get(word) is Kind.POOL:
                inside = Span(tree.span.source, tree.span.start + 1, tree.span.end - 1)
                yield from self._occurrence(word, inside if inside.text == word else None)

    def _arguments(self, call: ast.Call, callee: Imported) -> Iterator[Occurrence]:
        """The names of parameters of another definition, as a call gives them."""
        known = {parameter.name for parameter in callee.definition.parameters}
        for argument in call.arguments:
            if argument.name in known and (span := self.place.name_of(argument, str(argument.name))) is not None:
                symbol = Symbol(callee.path, callee.definition.name, str(argument.name))
                yield Occurrence(span, symbol, Kind.PARAMETER)

    def _occurrence(self, name: str, span: Span | None, record: bool = False) -> Iterator[Occurrence]:
        if span is None:
            return
        if name in self.kinds and span.start not in self.ops:
            around = [each for each in self.loops.get(name, ()) if each.start <= span.start < each.end]
            loop = max((each.start for each in around), default=-1)
            symbol = Symbol(self.path, self.definition.name, name, loop)
            yield Occurrence(span, symbol, self.kinds[name], span.start in self.declared, record)
        elif name in self.known:
            yield Occurrence(span, self.known[name].symbol, _kind_of(self.known[name]))

    def _parameters(self) -> Iterator[Declared]:
        for parameter in self.definition.parameters:
            yield parameter.name, Kind.PARAMETER, self.place.name_of(parameter, parameter.name)
        for pool in self.definition.pools:
            start, end = self.definition.name_span.end, self.definition.body.span.start
            after = self.place.find("for", start, end)
            yield pool, Kind.POOL, self.place.find(pool, after.end if after is not None else start, end)

    def _list_declared(self, tree: ast.Tree) -> Iterator[Declared]:
        """What a statement declares or binds for the whole body."""
        name_of = self.place.name_of
        match tree:
            case ast.Input(reference=each):
                yield each.name, Kind.INPUT, name_of(each, each.name)
            case ast.Target(reference=each):
                yield each.name, Kind.TARGET, name_of(each, each.name)
            case ast.Module(name=name):
                yield name, Kind.MODULE, name_of(tree, name, True)
            case ast.Pool(name=name):
                yield name, Kind.POOL, name_of(tree, name, True)
            case ast.Router(name=name):
                yield name, Kind.ROUTER, name_of(tree, name, True)
            case ast.Array(name=name):
                yield name, Kind.ARRAY, name_of(tree, name, True)
            case ast.Binding(references=references):
                yield from ((each.name, Kind.VALUE, name_of(each, each.name)) for each in references)
            case ast.NamedAxis(name=name):
                yield name, Kind.AXIS, name_of(tree, name)
            case ast.Loop(name=name) if name:
                yield name, Kind.ROUNDS, name_of(tree, name, True)
            case ast.Scan(names=names, body=body, until=until):
                for name in names:
                    yield name, Kind.VALUE, self.place.find(name, (until or body).span.end, tree.span.end)

    def _keys(self, tree: ast.Tree) -> Iterator[tuple[str, Kind, Span | None, Span]]:
        """What a loop or a scan binds for its own body, and the extent of the loop or scan."""
        match tree:
            case ast.Loop(variable=name, domain=domain) if name:
                first = self.place.find(tree.name, tree.span.start + 1, domain.span.start) if tree.name else None
                start = first.end if first is not None else tree.span.start
                yield name, Kind.KEY, self.place.find(name, start, domain.span.start), tree.span
            case ast.Scan(variable=name, carries=carries, sequence=sequence, body=body, until=until):
                inside = Span(tree.span.source, sequence.span.end, (until or body).span.end)
                yield name, Kind.VALUE, self.place.find(name, sequence.span.end, body.span.start), inside
                for carry in carries:
                    yield carry.name, Kind.VALUE, self.place.name_of(carry, carry.name), inside
