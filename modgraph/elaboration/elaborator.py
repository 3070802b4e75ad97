"""The elaborator: the place of a tree in the graph and the scope, and the access of rules to each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from modgraph.diagnostics import Diagnostic, Note, Span
from modgraph.diagnostics.suggest import MOST_CANDIDATES
from modgraph.elaboration import entities, errors
from modgraph.elaboration.context import NAME, STATEMENT, BlockCall, Context, Decision, Elaborated, localize_axis_names
from modgraph.elaboration.entities import POISON, Entity, Family, Poison, Template, Tensor, describe
from modgraph.elaboration.scope import Naming, Scope
from modgraph.frozen import replace_fields
from modgraph.ir import Call, Graph, Node, Result
from modgraph.prelude import is_prelude
from modgraph.syntax import ast
from modgraph.types import Axis

MOST_SUGGESTED = 1000
KEPT_BY = {  # how to use a value after the body that binds it
    "repeat": "bind {name} before the repeat too: then it has the value of the last round",
    "for": "bind {name} before the loop too: then it has the last value",
    "if": "bind {name} before the if, or in both branches",
    "scan": "yield it from the scan: yield {name}, and one more name after as",
}


@dataclass(frozen=True)
class Rules:
    """The rules of the language for each kind of expression, statement, callable and term of a stage."""

    expressions: Mapping[type[ast.Expression], Callable[[Any, Elaborator], Any]]
    statements: Mapping[type[ast.Statement], Callable[[Any, Elaborator], None]]
    applications: Mapping[type[Entity], Callable[[Any, tuple[Tensor, ...], Span, Elaborator], Any]]
    term: Callable[[ast.Expression, Elaborator], Any]


@dataclass
class ScanBody:
    """A scan while its body is elaborated; `captures` are the inputs of its region for results of the outer graph."""

    outer: Elaborator
    call: Call | None
    captures: dict[Result, str] = field(default_factory=dict)
    yields: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Elaborator:
    """Elaborates trees at one place; `region` is the path of the enclosing module of a pool, "" outside of pools."""

    context: Context
    rules: Rules
    graph: Graph
    scope: Scope
    naming: Naming
    call: BlockCall | None = None
    region: str = ""
    scan: ScanBody | None = None

    @property
    def decision(self) -> Decision | None:
        """The decision of the router whose body encloses this place."""
        return None if self.call is None else self.call.decision

    @property
    def axes(self) -> Mapping[str, Axis]:
        """The axes that the words of a block's input types are bound to."""
        return self.call.axes if self.call is not None else {}

    @property
    def defining(self) -> tuple[int, ...]:
        """The enclosing definitions, by identity."""
        return self.call.defining if self.call is not None else ()

    @property
    def home(self) -> int:
        """The graph that owns weights by name: for a scan, the graph around it."""
        return id(self.graph) if self.scan is None else self.scan.outer.home

    @property
    def graphs(self) -> list[Graph]:
        """The graphs around this place and its own: the steps of scans in each other, from the outermost."""
        return [self.graph] if self.scan is None else [*self.scan.outer.graphs, self.graph]

    # ------------------------------------------------------------ rules

    def evaluate(self, expression: ast.Expression) -> Any:
        """Evaluate an expression; `POISON` after a reported mistake."""
        self.context.spend(1, expression.span)
        return self.rules.expressions[type(expression)](expression, self)

    def evaluate_constant(self, expression: ast.Expression, what: str) -> Any:
        value = self.evaluate(expression)
        if self.is_axis(value, expression.span):
            return POISON
        if not isinstance(value, Entity) or isinstance(value, Poison):
            return value
        mistake = errors.NotConstant(**self.locate(expression), what=what, found=describe(value))
        if isinstance(value, entities.AxisEntity):
            mistake = mistake.replace(way_out=f"write its length: len({expression.span.text})")
        return self.report(mistake)

    def evaluate_tensor(self, expression: ast.Expression, what: str) -> Tensor | Poison:
        """Evaluate an expression to a single value of the network."""
        return self._require_tensor(self.evaluate(expression), expression, what)

    def evaluate_tensors(self, expression: ast.Expression, what: str) -> tuple[Tensor | Poison, ...]:
        """Evaluate an expression to one value, or to the members of a family."""
        value = self.evaluate(expression)
        is_family = isinstance(value, Family) and value.of_values
        return tuple(value.members.values()) if is_family else (self._require_tensor(value, expression, what),)

    def _require_tensor(self, value: Any, expression: ast.Expression, what: str) -> Tensor | Poison:
        if isinstance(value, Tensor | Poison):
            return value
        mistake = errors.NotValue(**self.locate(expression), what=what, found=describe(value))
        if isinstance(value, Family) and value.of_values:
            name, key = value.name, next(iter(value.members))
            mistake = mistake.replace(way_out=f"name a member, {name}[{key}], or take it whole: {name} -> concat")
        return self.report(mistake)

    def resolve_callable(self, term: ast.Expression) -> Any:
        """Resolve a term right of an arrow to a callable, or poison."""
        return self.rules.term(term, self)

    def apply(self, callable_: Any, tensors: tuple[Tensor, ...], span: Span) -> Any:
        """Apply an op, a template, a module or a block to values."""
        return self.rules.applications[type(callable_)](callable_, tensors, span, self)

    def elaborate(self, body: ast.Body) -> None:
        """Elaborate the statements of a body, in order."""
        for statement in body.statements:
            self.context.spend(STATEMENT, statement.span)
            before = len(self.graph)
            self.rules.statements[type(statement)](statement, self)
            if self.context.is_observed:
                self._observe(statement, tuple(islice(self.graph, before, None)))

    def _observe(self, statement: ast.Statement, nodes: tuple[Node, ...]) -> None:
        match statement:
            case ast.Input(reference=ast.Reference(name=name)) | ast.Target(reference=ast.Reference(name=name)):
                names = {name: self.scope.find_bound(name)}
            case ast.Module(name=name) | ast.Pool(name=name) | ast.Router(name=name) | ast.Array(name=name):
                names = {name: self.scope.find_bound(name)}
            case _:
                names = {}
        self.context.observe(statement.span, Elaborated(nodes, names))

    # ------------------------------------------------------------ other places

    def with_scope(self, scope: Scope) -> Elaborator:
        return replace_fields(self, scope=scope)

    def with_naming(self, naming: Naming) -> Elaborator:
        return replace_fields(self, naming=naming)

    def make_template(self, *stages: ast.Stage) -> Template:
        """Make a template from stages that are applied elsewhere, in the scope of their text."""
        words = {each.name for stage in stages for each in ast.walk(stage) if isinstance(each, ast.Name)}
        known = ((word, self.scope.find(word)) for word in sorted(words))
        constants = tuple((word, value) for word, value in known if value is not None and not isinstance(value, Entity))
        return Template(stages, self.scope, self.call, constants)

    def enter_template(self, template: Template) -> Elaborator:
        """Return an elaborator in the scope of a template; weights frozen here stay frozen."""
        scope = template.scope
        constants = {word: value for word, value in template.constants if scope.find(word) is not value}
        if constants or (self.scope.frozen and not scope.frozen):
            scope = scope.nest(frozen=self.scope.frozen)
            scope.names |= constants
        return replace_fields(self, scope=scope, call=template.call)

    # ------------------------------------------------------------ messages

    def report(self, diagnostic: Diagnostic) -> Poison:
        """Report a diagnostic in the words of the spec; a mistake in the text of a block gets a note on the use."""
        named = {} if self.decision is None else self.decision.named
        if self.call is not None:
            named = named | self.call.named | {word: reading for word, (reading, _) in self.call.apart.items()}
        diagnostic = localize_axis_names(diagnostic, self.scope, named)
        span, use = diagnostic.span, self.call.span if self.call is not None else None
        is_apart = span is not None and use is not None and not (use.holds(span) or is_prelude(span.source))
        if is_apart and diagnostic.severity == "error":
            note = Note(text=f"{self.call} is used here", span=use)
            diagnostic = diagnostic.replace(notes=(*diagnostic.notes, note))
        self.context.add_diagnostic(diagnostic)
        return POISON

    def is_axis(self, value: Any, span: Span) -> bool:
        """Whether a value is a word for an axis of an input, resolved to the op of that name; report it if so."""
        term = value.term if isinstance(value, Template) else None
        if not isinstance(term, ast.Name) or term.name not in self.axes:
            return False
        self.report_axis(term.name, span)
        return True

    def report_axis(self, name: str, span: Span) -> Poison:
        """Report the use of a word for an axis of any length as a number."""
        assert self.call is not None
        if self.context.without_use:
            return POISON  # a use may have a fixed length along it
        way_out = f"axis={name} names it; for a number make it a parameter: block {self.call.name}({name}) {{ … }}"
        if self.call.decision is not None:
            way_out = f"axis={name} names it; it is a number where the routed value has a fixed length along it"
        return self.report(errors.AxisOfAnyLength(span=span, name=name, way_out=way_out))

    def refuse(self, place: ast.Tree | Span, needed: str, found: str, way_out: str = "") -> Poison:
        """Report that a place needs something else; for a parameter, the place of its argument."""
        fault = {"span": place} if isinstance(place, Span) else self.locate(place)
        return self.report(errors.WrongKind(**fault, needed=needed, found=found, way_out=way_out))

    def report_ended(self, name: str, span: Span) -> bool:
        """Report a name that only an ended inner body bound; return whether there is one."""
        body = next((scope.ended[name] for scope in self.scope.chain_in_body() if name in scope.ended), None)
        if body is not None:
            self.report(errors.BoundInside(span=span, name=name, body=body, suggestion=KEPT_BY[body].format(name=name)))
        return body is not None

    def list_candidates(self, span: Span, wanted: Callable[[Any], bool] = lambda value: True) -> list[str]:
        """List candidates for a misspelt name, the latest of each scope; comparing with many costs steps."""
        latest = (islice(reversed(scope.names.items()), MOST_SUGGESTED) for scope in self.scope.chain())
        names = [name for names in latest for name, value in names if wanted(value)]
        self.context.spend(NAME * min(len(names), MOST_CANDIDATES), span)
        return names

    def locate(self, expression: ast.Tree) -> dict[str, Any]:
        """Return the span and notes for a mistake in an expression; for a parameter, the place of its argument."""
        return locate_fault(expression.span, self.find_argument(expression))

    def find_argument(self, expression: ast.Tree) -> Span | None:
        """Find the place of the argument that an expression refers to, if it is a parameter with one."""
        return self.scope.find_argument(expression.name) if isinstance(expression, ast.Name) else None


def locate_fault(span: Span, given: Span | None) -> dict[str, Any]:
    """Return the span and notes for a mistake in a value, at its argument if one was given."""
    return {"span": span} if given is None else {"span": given, "notes": (Note(text="used here", span=span),)}
