"""Holds the state of one elaboration: the report, names and uses so far, limits, and the enclosing bodies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from modgraph.declare import Role, Signature
from modgraph.diagnostics import Diagnostic, Note, Report, Span
from modgraph.elaboration.entities import Tensor, WithAxis
from modgraph.elaboration.errors import DecidesByVectors, DoesNotFit, RecordShape, TooLarge
from modgraph.elaboration.scope import Naming, Scope
from modgraph.ir import Call, Graph, Node, Result
from modgraph.ir.node import Kind
from modgraph.ops import Op
from modgraph.prelude import is_prelude
from modgraph.routers import PoolTypes, Router
from modgraph.syntax import ast
from modgraph.types import Axis, Shape, TensorType, format_shape

MOST_STEPS = 1_000_000  # of about two microseconds
LIMITS = {  # the most there may be of a thing, the message beyond it, and the way out
    "nodes": (30_000, "the graph has too many nodes", "lower the number"),
    "iterations": (20_000, "too many iterations in all", "lower the number"),
    "weights": (200_000, "the model has too many tensors of weights", "lower the number"),  # those of pools included
    "steps": (MOST_STEPS, "the spec takes too many steps to elaborate", "write fewer iterations or shorter lists"),
    "uses": (50, "modules used inside modules are nested too deep", "use fewer levels"),
    "pools": (16, "pools inside pools are nested too deep", "use fewer levels"),  # four levels each in a stored graph
}
STATEMENT, CALL, BLOCK, MISTAKE = 4, 4, 40, 200  # steps in addition to those of their parts
OPERAND, RECORD, NAME = 8, 16, 10  # steps for an operand, a record of a router, a candidate for a misspelt name
MOST_ERRORS = 50

Observer = Callable[[Span, Any], None]  # called with a place and its meaning: a value, a module, a bound op


@dataclass(frozen=True)
class Elaborated:
    """A statement that was elaborated: the nodes that it added, and the meaning of the names that it declares."""

    nodes: tuple[Node, ...]
    names: Mapping[str, Any]


class Abandoned(Exception):
    """Raised when a limit is reached and elaboration stops."""


@dataclass(frozen=True)
class Declared:
    """The declaration of a module, pool or router; `block` names the enclosing block, perhaps one used in a scan."""

    name: str
    span: Span
    block: str | None = None
    in_scan: bool = False


@dataclass
class Decision:
    """The decision of a router while its body is elaborated.

    The path `router` is declared at `span`. `words` are the names of axes in the body, and `named` the axes they bind;
    `naming` names the nodes that rename axes. `routed` is the value to route; its last `message_rank` axes are those of
    a message, and the axes before them are the token axes. It lacks the axes in `lacking`. `modules` is the axis of the
    modules. Where the routed value has it too, it is a token axis with a name of its own, in `of_modules`. `apart` has
    the further readings of axes that the operands have twice, with the axes, by word. `records`
    and `roles` hold the records so far. `choices` are those of the routes in `gates_in`, the graph of a body that
    records gates and no choice. `read` holds, by graph and result, the records that the surroundings have read.
    """

    router: str
    span: Span
    words: frozenset[str]
    naming: Naming
    modules: Axis | None = None
    message_rank: int = 0
    routed: Tensor | None = None
    records_choice: bool = False
    gates_in: Graph | None = None
    choices: list[Tensor] = field(default_factory=list)
    records: dict[str, list[Any]] = field(default_factory=dict)
    roles: set[Role | None] = field(default_factory=set)
    named: dict[str, Axis] = field(default_factory=dict)
    lacking: set[Axis] = field(default_factory=set)
    of_modules: set[Axis] = field(default_factory=set)
    read: dict[tuple[int, Result], Any] = field(default_factory=dict)
    apart: dict[str, tuple[Axis, Axis]] = field(default_factory=dict)

    @property
    def token_axes(self) -> Shape:
        """The token axes of the routed value, by their names in the body."""
        shape = () if self.routed is None else self.routed.type.shape
        return tuple(axis for axis in shape[: len(shape) - self.message_rank] if axis not in self.lacking)

    def find_outer_name(self, axis: Axis, shape: Shape) -> str:
        """Return the outer name of an axis that the body names, in a value of some shape; "" for a plain axis."""
        modules = self.modules if axis in self.of_modules else None
        return modules.name if modules is not None and modules not in shape else ""

    def rename_shape(self, shape: Shape) -> Shape:
        """Return a shape with the outer names of its axes."""
        named = {*self.named.values()}
        return tuple(Axis(each.size, self.find_outer_name(each, shape)) if each in named else each for each in shape)


@dataclass
class BlockCall:
    """One use of a block while its body is elaborated.

    `operands` are those not yet taken; `inputs` are those of the body so far, and `given` names the ones that have an
    operand. `axes` binds words to axes, `named_by` maps each word to its first input, and `token_axes` holds the word
    and the input for each token axis, from the last. In `outputs` a family counts as one. `apart` has the further
    readings of axes that the operands have twice, with the axes, by word. `axis_words` are words of a block that name
    axes of its inputs; `named` has the plain axes that are named for it. `naming` names the nodes that rename axes.

    Without operands the block is checked by itself, with inputs of the declared types. `decision` is that of a router.
    `defining` identifies this definition and those that enclose the use; none of them may be used inside it.
    """

    name: str
    operands: list[Tensor] | None
    axes: dict[str, Any] = field(default_factory=dict)
    named_by: dict[str, ast.Input] = field(default_factory=dict)
    token_axes: dict[int, tuple[str, ast.Input]] = field(default_factory=dict)
    inputs: list[ast.Input] = field(default_factory=list)
    given: set[str] = field(default_factory=set)
    outputs: list[Any] = field(default_factory=list)
    span: Span | None = None
    decision: Decision | None = None
    apart: dict[str, tuple[Axis, Axis]] = field(default_factory=dict)
    axis_words: frozenset[str] = frozenset()
    named: dict[str, Axis] = field(default_factory=dict)
    naming: Naming | None = None
    defining: tuple[int, ...] = ()

    def explain_count(self, given: int) -> str:
        """Say how many inputs the body has; an empty text if so many operands fit."""
        most = len(self.inputs)
        fewest = sum(each.default is None for each in self.inputs)
        return "" if fewest <= given <= most else f"{fewest} to {most}" if fewest < most else str(most)

    def __str__(self) -> str:
        return f'{"block" if self.decision is None else "router"} "{self.name}"'


class Context:
    """The mutable state of one elaboration."""

    def __init__(self, report: Report, observe: Observer | None = None, without_use: bool = False) -> None:
        self.report = report
        self.observe: Observer = observe or (lambda span, value: None)
        self.is_observed = observe is not None
        self.without_use = without_use  # whether a block is checked by itself: some parameters are unknown
        self.used: dict[str, None] = {}  # paths of the modules, pools and routers in use
        self.given: set[str] = set()  # names of the model's inputs, targets and scans
        self.messages: dict[str, tuple[TensorType, ...]] = {}  # the types that a pool's modules take, by its path
        self.yields: dict[str, tuple[TensorType, ...]] = {}  # the types that they yield, if several
        self.first_used: dict[str, Note] = {}  # notes on the first use of a pool, by its path
        self.of_any_length: dict[str, str] = {}  # axes of any length in types, each with the axis that it reads again
        self.lengths: dict[str, str] = {}  # inputs with the lengths along an axis, by its name
        self.signatures: dict[tuple[Op | Router, tuple[TensorType, ...], PoolTypes | None], Signature] = {}
        self.weights: dict[tuple[int, str], dict[str, tuple[int, ...]]] = {}
        self.owners: dict[int, dict[str, str]] = {}  # by graph: the owner of weights at or below a name
        self.demands: list[Any] = []  # what a spec demands of values, checked in the finished graph
        self.growing: dict[str, Span] = {}  # spans of the growth of modules, by the name of their axis
        self.may_grow: set[str] = set()  # names of the axes that a growth condition mentions
        self.deferred: list[tuple[str, Diagnostic]] = []  # reported unless the modules along an axis may grow
        self.named: dict[str, Node] = {}
        self.shorter: dict[str, tuple[str, str]] = {}  # candidates for shorter names, by the path of a call or route
        self.unbound: dict[str, str] = {}  # decisions, by the name of a node that renames the axes of a record
        self.decisions: dict[str, Any] = {}  # the decision of a router at one use, by the name of its node
        self.decides: dict[str, Any] = {}  # how a router defined in the language decides, by its path
        self.call: Call | None = None  # the use of the definition whose body is being elaborated
        self.declared: dict[str, Declared] = {}  # every module, pool and router of the model, by path
        self.counts = dict.fromkeys(LIMITS, 0)
        self.active_blocks: list[int] = []  # definitions that are being inlined, from the outside
        self.uses: list[tuple[Span, Decision | None]] = []  # routers and blocks being inlined: spans, and decisions
        self.applied: list[tuple[Span, Span]] = []  # spans of code that is written in one place and applied in another

    @property
    def incomplete(self) -> bool:
        """Whether something may be missing only because of a reported mistake or of an absent use."""
        return self.without_use or bool(self.report.errors)

    def add_diagnostic(self, diagnostic: Diagnostic) -> None:
        self.report.add(self._annotate(diagnostic))
        self.counts["steps"] += MISTAKE
        if len(self.report.errors) >= MOST_ERRORS:
            raise Abandoned

    def report_unless_growing(self, axis: str, caution: Diagnostic) -> None:
        """Defer a caution that applies only if no modules can join those along an axis."""
        self.deferred.append((axis, self._annotate(caution)))

    def report_deferred(self) -> None:
        self.report.extend(caution for axis, caution in self.deferred if axis not in self.may_grow)

    def _annotate(self, diagnostic: Diagnostic) -> Diagnostic:
        """Add notes for code that is written in one place and applied in another.

        Move a mistake in the text of a built-in router or block to its use in the spec.
        """
        span, notes = diagnostic.span, diagnostic.notes
        apart = next(((there, here) for there, here in reversed(self.applied) if not here.holds(there)), None)
        if apart is not None:
            written, applied = apart
            at_use = span is not None and applied.holds(span)
            text, there = ("given here", written) if at_use else ("applied here", applied)
            notes = (*notes, Note(text=text, span=there))
        found = next((each for each in reversed(self.uses) if not is_prelude(each[0].source)), None)
        if span is None or found is None:
            return diagnostic.replace(notes=notes)
        use, decision = found
        if is_prelude(span.source):
            notes = (Note(text=f"in the text of the {'block' if decision is None else 'router'}", span=span), *notes)
            if decision and isinstance(diagnostic, DoesNotFit | RecordShape) and decision.message_rank > 1:
                return _explain_no_vectors(decision, use, notes[:1])
            return diagnostic.replace(span=use, notes=notes)
        moved = (replace(each, span=use) if each.span and is_prelude(each.span.source) else each for each in notes)
        return diagnostic.replace(notes=tuple(moved))

    def bind_signature(
        self, declared: Op | Router, operands: tuple[TensorType, ...], pool: PoolTypes | None = None
    ) -> Signature:
        """Bind an op, or the router of a pool, to the types of its operands. Raises `Misfit`."""
        known = self.signatures.get((declared, operands, pool))
        if known is None:
            if isinstance(declared, Router) and pool is not None:
                known = declared.bind_pool(pool, *operands)
            else:
                known = declared.bind(*operands)
            self.signatures[declared, operands, pool] = known
        return known

    def count(self, what: str, more: int, span: Span) -> None:
        """Add to a count. Raises `Abandoned`, with a report, beyond its limit."""
        self.counts[what] += more
        most, problem, way_out = LIMITS[what]
        if self.counts[what] > most:
            self.add_diagnostic(TooLarge(span=span, what=problem, limit=most, way_out=way_out))
            raise Abandoned

    def spend(self, steps: int, span: Span) -> None:
        """Charge work, so that no text takes long: an expression costs a step, and so does a member of a list."""
        self.counts["steps"] += steps
        if self.counts["steps"] > MOST_STEPS:
            self.count("steps", 0, span)

    @contextmanager
    def enter_modules(self, span: Span) -> Iterator[None]:
        """Enter the modules of a pool, which belong to no call."""
        self.count("pools", 1, span)
        with self.enter_call(None):
            yield
        self.counts["pools"] -= 1

    @contextmanager
    def enter_application(self, written: Span, applied: Span) -> Iterator[None]:
        """Enter code that is written in one place and applied in another; mistakes in it refer to both."""
        self.applied.append((written, applied))
        yield
        self.applied.pop()

    @contextmanager
    def enter_call(self, call: Call | None) -> Iterator[None]:
        """Add nodes to a call."""
        outer, self.call = self.call, call
        yield
        self.call = outer

    @contextmanager
    def enter_use(
        self, kind: Kind, name: str, naming: Naming, span: Span, definition: ast.Definition | None = None
    ) -> Iterator[None]:
        """Enter a use of a module, or of the definition of a block or router."""
        self.count("uses", 1, span)
        self.active_blocks.append(id(definition))
        with self.enter_call(Call(kind, name, naming.node, naming.owner, self.call, span=span)):
            yield
        self.active_blocks.pop()
        self.counts["uses"] -= 1


def _explain_no_vectors(decision: Decision, span: Span, notes: tuple[Note, ...]) -> Diagnostic:
    """Return the message that a router of the vocabulary decides by vectors, but modules take more axes."""
    rank, pool = decision.message_rank, "" if decision.modules is None else decision.modules.name
    shape = () if decision.routed is None else decision.rename_shape(decision.routed.type.shape)[-rank:]
    vector = "mean" if any(axis.is_padded for axis in shape) else f"flatten({rank})"
    facts: Any = {"router": decision.router, "pool": pool, "does": f"take float{format_shape(shape)}"}
    way_out = f"route by weights: w = x -> {vector} -> linear({pool}) -> softmax, then x -> {pool} by w"
    return DecidesByVectors(span=span, notes=notes, way_out=way_out, **facts)


def localize_axis_names(diagnostic: Diagnostic, scope: Scope, named: Mapping[str, Axis]) -> Diagnostic:
    """Replace the paths of axes in a message by their names in the scope, and `named` axes by their words.

    A name without a dot comes from the user and stays.
    """
    called = {axis.name: word for word, axis in named.items()}
    for name, value in (item for each in scope.chain() for item in each.names.items()):
        if isinstance(value, WithAxis):  # inner names hide outer ones
            called.setdefault(value.axis.name, name)
    words = {path: word for path, word in called.items() if "." in path}
    if not words:
        return diagnostic
    paths = "|".join(re.escape(path) for path in sorted(words, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w.])({paths})(?![\w.])")

    def plain(text: str) -> str:
        return pattern.sub(lambda found: words[found[0]], text)

    texts: dict[str, Any] = {name: plain(text) for name, text in vars(diagnostic).items() if isinstance(text, str)}
    notes = tuple(replace(note, text=plain(note.text)) for note in diagnostic.notes)
    return diagnostic.replace(**texts, notes=notes)
