"""Where a tree stands while it is elaborated, and through which the rules of the language reach each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from modgraph.diagnostics import Diagnostic, Note, Span
from modgraph.diagnostics.suggest import MOST_CANDIDATES
from modgraph.elaboration import entities, errors
from modgraph.elaboration.context import NAME, STATEMENT, BlockCall, Context, Decision, localize_axis_names
from modgraph.elaboration.entities import POISON, Entity, Family, Poison, Template, Tensor, describe
from modgraph.elaboration.scope import Naming, Scope
from modgraph.frozen import replace_fields
from modgraph.ir import Call, Graph, Result
from modgraph.routers.prelude import is_prelude
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
    """What each kind of tree means, how each kind of callable is applied, and what a term right of an arrow is."""

    expressions: Mapping[type[ast.Expression], Callable[[Any, Elaborator], Any]]
    statements: Mapping[type[ast.Statement], Callable[[Any, Elaborator], None]]
    applications: Mapping[type[Entity], Callable[[Any, tuple[Tensor, ...], Span, Elaborator], Any]]
    term: Callable[[ast.Expression, Elaborator], Any]


@dataclass
class ScanBody:
    """A scan while its body is elaborated; `captures` are the inputs of its region for what it reads from around it."""

    outer: Elaborator
    call: Call | None
    captures: dict[Result, str] = field(default_factory=dict)
    yields: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Elaborator:
    """Where an expression stands; `region` is the path of the pool's module that it is inside, if in one."""

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
        """What the router decides in whose body this stands, if it stands in one."""
        return None if self.call is None else self.call.decision

    @property
    def axes(self) -> Mapping[str, Axis]:
        """What the words of a block's input types stand for in this use of it."""
        return self.call.axes if self.call is not None else {}

    @property
    def defining(self) -> tuple[int, ...]:
        """The definitions in whose text this stands, by their identity."""
        return self.call.defining if self.call is not None else ()

    @property
    def home(self) -> int:
        """The graph whose weights have names of their own: a scan's are those around it."""
        return id(self.graph if self.scan is None else self.scan.outer.graph)

    # ------------------------------------------------------------ rules

    def evaluate(self, expression: ast.Expression) -> Any:
        """The value of an expression; `POISON` after a mistake, which has then been told."""
        self.context.spend(1, expression.span)
        return self.rules.expressions[type(expression)](expression, self)

    def constant(self, expression: ast.Expression, what: str) -> Any:
        value = self.evaluate(expression)
        if self.is_axis(value, expression.span):
            return POISON
        if not isinstance(value, Entity) or isinstance(value, Poison):
            return value
        mistake = errors.NotConstant(**self.locate(expression), what=what, found=describe(value))
        if isinstance(value, entities.AxisEntity):
            mistake = mistake.replace(way_out=f"how long it is, as a number: len({expression.span.text})")
        return self.report(mistake)

    def tensor(self, expression: ast.Expression, what: str) -> Tensor | Poison:
        """The value of an expression that must be one value of the network."""
        return self._one(self.evaluate(expression), expression, what)

    def tensors(self, expression: ast.Expression, what: str) -> tuple[Tensor | Poison, ...]:
        """The same of one value or a whole family, member by member."""
        value = self.evaluate(expression)
        is_family = isinstance(value, Family) and value.of_values
        return tuple(value.members.values()) if is_family else (self._one(value, expression, what),)

    def _one(self, value: Any, expression: ast.Expression, what: str) -> Tensor | Poison:
        if isinstance(value, Tensor | Poison):
            return value
        mistake = errors.NotValue(**self.locate(expression), what=what, found=describe(value))
        if isinstance(value, Family) and value.of_values:
            name, key = value.name, next(iter(value.members))
            mistake = mistake.replace(way_out=f"name a member, {name}[{key}], or take it whole: {name} -> concat")
        return self.report(mistake)

    def resolve_callable(self, term: ast.Expression) -> Any:
        """What a term right of an arrow stands for: something that can be applied, or poison."""
        return self.rules.term(term, self)

    def apply(self, callable_: Any, tensors: tuple[Tensor, ...], span: Span) -> Any:
        """What an op, a template, a module or a block yields for some values."""
        return self.rules.applications[type(callable_)](callable_, tensors, span, self)

    def elaborate(self, body: ast.Body) -> None:
        """All statements of a body, in order."""
        for statement in body.statements:
            self.context.spend(STATEMENT, statement.span)
            self.rules.statements[type(statement)](statement, self)

    # ------------------------------------------------------------ other places

    def with_scope(self, scope: Scope) -> Elaborator:
        return replace_fields(self, scope=scope)

    def with_naming(self, naming: Naming) -> Elaborator:
        return replace_fields(self, naming=naming)

    def make_template(self, *stages: ast.Stage) -> Template:
        """Stages to be applied elsewhere, in the scope where they are written."""
        return Template(stages, self.scope, self.call)

    def enter_template(self, template: Template) -> Elaborator:
        """Where the names of a template mean something; what is frozen here stays so."""
        scope = template.scope
        if self.scope.frozen and not scope.frozen:
            scope = scope.nest(frozen=True)
        return replace_fields(self, scope=scope, call=template.call)

    # ------------------------------------------------------------ messages

    def report(self, diagnostic: Diagnostic) -> Poison:
        """Tell of a mistake in the words of the text; one in a block's own, with where the block is used."""
        diagnostic = localize_axis_names(diagnostic, self.scope, {} if self.decision is None else self.decision.named)
        span, use = diagnostic.span, self.call.span if self.call is not None else None
        is_apart = span is not None and use is not None and not (use.holds(span) or is_prelude(span.source))
        if is_apart and diagnostic.severity == "error":
            note = Note(text=f"{self.call} is used here", span=use)
            diagnostic = diagnostic.replace(notes=(*diagnostic.notes, note))
        self.context.add_diagnostic(diagnostic)
        return POISON

    def is_axis(self, value: Any, span: Span) -> bool:
        """Whether a value is the word for an axis of an input, which was taken for an op of that name; if so, told."""
        term = value.term if isinstance(value, Template) else None
        if not isinstance(term, ast.Name) or term.name not in self.axes:
            return False
        self.report_axis(term.name, span)
        return True

    def report_axis(self, name: str, span: Span) -> None:
        """Tell that the word for an axis of an input is no number."""
        assert self.call is not None
        way_out = f"axis={name} names it; for a number make it a parameter: block {self.call.name}({name}) {{ … }}"
        if self.call.decision is not None:
            way_out = f"axis={name} names it; it is a number where what is sent has a fixed length along it"
        self.report(errors.AxisOfAnyLength(span=span, name=name, way_out=way_out))

    def refuse(self, place: ast.Tree | Span, needed: str, found: str, way_out: str = "") -> Poison:
        """Report that something else is needed at a place; a parameter is at fault where its argument stands."""
        fault = {"span": place} if isinstance(place, Span) else self.locate(place)
        return self.report(errors.WrongKind(**fault, needed=needed, found=found, way_out=way_out))

    def report_ended(self, name: str, span: Span) -> bool:
        """Report a name that was bound only in an inner body; whether it was."""
        body = next((scope.ended[name] for scope in self.scope.chain_in_body() if name in scope.ended), None)
        if body is not None:
            self.report(errors.BoundInside(span=span, name=name, body=body, suggestion=KEPT_BY[body].format(name=name)))
        return body is not None

    def visible(self, span: Span, wanted: Callable[[Any], bool] = lambda value: True) -> list[str]:
        """The names to suggest for a misspelt one, of each scope the latest; to compare it with many is work."""
        latest = (islice(reversed(scope.names.items()), MOST_SUGGESTED) for scope in self.scope.chain())
        names = [name for names in latest for name, value in names if wanted(value)]
        self.context.spend(NAME * min(len(names), MOST_CANDIDATES), span)
        return names

    def locate(self, expression: ast.Tree) -> dict[str, Any]:
        """Where to tell that an expression is of a wrong kind: a parameter, where its argument stands."""
        return locate_fault(expression.span, self.find_argument(expression))

    def find_argument(self, expression: ast.Tree) -> Span | None:
        """Where the argument stands that an expression means, if it is a parameter and was given one."""
        return self.scope.find_argument(expression.name) if isinstance(expression, ast.Name) else None


def locate_fault(span: Span, given: Span | None) -> dict[str, Any]:
    """Where to tell that what stands at a place, where it was perhaps given as an argument, is of a wrong kind."""
    return {"span": span} if given is None else {"span": given, "notes": (Note(text="used here", span=span),)}
