"""What one elaboration carries along: the report, what was used and named, the limits, and the bodies it is in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from modgraph.declare import Role, Signature
from modgraph.diagnostics import Diagnostic, Note, Report, Span
from modgraph.elaboration.entities import Tensor, WithAxis
from modgraph.elaboration.errors import TooLarge
from modgraph.elaboration.scope import Naming, Scope
from modgraph.ir import Call, Node, Result
from modgraph.ir.node import Kind
from modgraph.ops import Op
from modgraph.routers import PoolTypes, Router
from modgraph.routers.prelude import is_prelude
from modgraph.syntax import ast
from modgraph.types import Axis, Shape, TensorType

MOST_STEPS = 1_000_000  # of about two microseconds
LIMITS = {  # how much there may be of a thing; what is told where there is more, and the way out
    "nodes": (30_000, "the graph has too many nodes", "lower the number"),
    "iterations": (20_000, "too many iterations in all", "lower the number"),
    "weights": (
        200_000,
        "the model has too many tensors of weights",
        "lower the number",
    ),  # in all modules of all pools
    "steps": (MOST_STEPS, "the spec takes too many steps to work out", "write fewer iterations or shorter lists"),
    "uses": (50, "modules used inside modules are nested too deep", "use fewer levels"),
    "pools": (16, "pools inside pools are nested too deep", "use fewer levels"),  # a stored graph has four for each
}
STATEMENT, CALL, BLOCK, MISTAKE = 4, 4, 40, 200  # steps that these take besides those of their parts
OPERAND, RECORD, NAME = 8, 16, 10  # of an op, of a router, compared with a misspelt one
MOST_ERRORS = 50

Observer = Callable[[Span, Any], None]  # told what stands at a place: a value, a module, a bound op


class Abandoned(Exception):
    """A limit is reached: nothing more can usefully be said."""


@dataclass(frozen=True)
class Declared:
    """Where a module, a pool or a router is declared, and the name of a block, perhaps used in a scan, that does so."""

    name: str
    span: Span
    block: str | None = None
    in_scan: bool = False


@dataclass
class Decision:
    """What a router decides while its body is elaborated: what it recorded, each time by name, and in what roles.

    It is declared at `span` by the path `router`. `naming` is that of what names axes, `words` are those that its body
    names axes by, `named` the axes that got a name for them; what it routes has none of the `lacking`. What it routes
    enters first, as `routed`, whose axes before the last `message_rank`, those of a message, are its senders. `modules`
    is the axis of the modules; in what is routed it is one of senders like any other, `of_modules` with a name of its
    own. `read` are the records that have been read, by graph and result, as the surroundings see them.
    """

    router: str
    span: Span
    words: frozenset[str]
    naming: Naming
    modules: Axis | None = None
    message_rank: int = 0
    routed: Tensor | None = None
    records_choice: bool = False
    records: dict[str, list[Any]] = field(default_factory=dict)
    roles: set[Role | None] = field(default_factory=set)
    named: dict[str, Axis] = field(default_factory=dict)
    lacking: set[Axis] = field(default_factory=set)
    of_modules: set[Axis] = field(default_factory=set)
    read: dict[tuple[int, Result], Any] = field(default_factory=dict)

    @property
    def token_axes(self) -> Shape:
        """The axes of the senders, as the body sees them, that what is routed has."""
        shape = () if self.routed is None else self.routed.type.shape
        return tuple(axis for axis in shape[: len(shape) - self.message_rank] if axis not in self.lacking)

    def name_outside(self, axis: Axis, shape: Shape) -> str:
        """What the surroundings call an axis that the body names, in a value of some shape; none if it is plain."""
        modules = self.modules if axis in self.of_modules else None
        return modules.name if modules is not None and modules not in shape else ""

    def shape_outside(self, shape: Shape) -> Shape:
        """A shape as the surroundings name its axes."""
        named = {*self.named.values()}
        return tuple(Axis(each.size, self.name_outside(each, shape)) if each in named else each for each in shape)


@dataclass
class BlockCall:
    """One use of a block while its body is elaborated: operands not yet taken and how many inputs there were, axes they
    bound, the first input with each name of an axis, names of the senders' axes from the last with the first input that
    has them, outputs so far, of which a family is one.

    Without operands it is no use: the block is checked by itself, its inputs being of the types it declares.
    `decision` is that of a router, if it is one. `defining` are the definitions in whose text the use stands, and its
    own: none of them is used in its own text.
    """

    name: str
    operands: list[Tensor] | None
    axes: dict[str, Any] = field(default_factory=dict)
    named_by: dict[str, ast.Input] = field(default_factory=dict)
    token_axes: dict[int, tuple[str, ast.Input]] = field(default_factory=dict)
    taken: int = 0
    outputs: list[Any] = field(default_factory=list)
    span: Span | None = None
    decision: Decision | None = None
    defining: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f'{"block" if self.decision is None else "router"} "{self.name}"'


class Context:
    """The state of one elaboration."""

    def __init__(self, report: Report, observe: Observer | None = None, without_use: bool = False) -> None:
        self.report = report
        self.observe: Observer = observe or (lambda span, value: None)
        self.is_observed = observe is not None
        self.without_use = without_use  # of a block: parameters without a default are not known
        self.used: dict[str, None] = {}  # paths of the modules, pools and routers that are used
        self.given: set[str] = set()  # names of the model's inputs, targets and scans
        self.messages: dict[str, tuple[TensorType, ...]] = {}  # the values that a pool's modules take, by its path
        self.yields: dict[str, tuple[TensorType, ...]] = {}  # those that they yield, where they are several
        self.first_used: dict[str, Note] = {}  # by a pool's path, of the use that its modules are shaped for
        self.of_any_length: set[str] = set()  # axes, by name
        self.lengths: dict[str, str] = {}  # the input that tells the lengths of an axis, by the axis' name
        self.signatures: dict[tuple[Op | Router, tuple[TensorType, ...], PoolTypes | None], Signature] = {}
        self.weights: dict[tuple[int, str], dict[str, tuple[int, ...]]] = {}
        self.owners: dict[int, dict[str, str]] = {}  # of a graph: what lies at or below a name, of an op's weights
        self.growing: dict[str, Span] = {}  # where it is said when the modules along an axis grow, by its name
        self.may_grow: set[str] = set()  # the axes of which it is said whether they grow
        self.deferred: list[tuple[str, Diagnostic]] = []  # what is told unless the modules along an axis may grow
        self.named: dict[str, Node] = {}
        self.shorter: dict[str, tuple[str, str]] = {}  # by the path of a call or route, names that are perhaps unique
        self.unbound: dict[str, str] = {}  # by the name of a node that names axes of a record, that of the decision
        self.decisions: dict[str, Any] = {}  # what a router decides at a use, by the name of its node
        self.decides: dict[str, Any] = {}  # how a router that is written in the language does at each use, by its path
        self.call: Call | None = None  # the use of a definition whose body is being elaborated
        self.declared: dict[str, Declared] = {}  # every module, pool and router of the whole model, by path
        self.counts = dict.fromkeys(LIMITS, 0)
        self.active_blocks: list[int] = []  # definitions whose uses are being put in, each inside another
        self.uses: list[Span] = []  # of routers whose bodies are put in
        self.applied: list[tuple[Span, Span]] = []  # where something is written, and where it is being applied

    @property
    def incomplete(self) -> bool:
        """Whether something may be missing only because of a mistake that was told, or of what a use would say."""
        return self.without_use or bool(self.report.errors)

    def add_diagnostic(self, diagnostic: Diagnostic) -> None:
        self.report.add(self._annotate(diagnostic))
        self.counts["steps"] += MISTAKE
        if len(self.report.errors) >= MOST_ERRORS:
            raise Abandoned

    def report_unless_growing(self, axis: str, caution: Diagnostic) -> None:
        """Tell at the end of a pool's modules what matters only if no more can join them."""
        self.deferred.append((axis, self._annotate(caution)))

    def report_deferred(self) -> None:
        self.report.extend(caution for axis, caution in self.deferred if axis not in self.may_grow)

    def _annotate(self, diagnostic: Diagnostic) -> Diagnostic:
        """With a note of the other end of what is written at one place and applied at another; a mistake in a router of
        the vocabulary where a spec uses it, with a note into its text."""
        span, notes = diagnostic.span, diagnostic.notes
        apart = next(((there, here) for there, here in reversed(self.applied) if not here.holds(there)), None)
        if apart is not None:
            written, applied = apart
            at_use = span is not None and applied.holds(span)
            text, there = ("given here", written) if at_use else ("applied here", applied)
            notes = (*notes, Note(text=text, span=there))
        use = next((each for each in reversed(self.uses) if not is_prelude(each.source)), None)
        if span is None or use is None:
            return diagnostic.replace(notes=notes)
        if is_prelude(span.source):
            return diagnostic.replace(span=use, notes=(Note(text="in the router's own text", span=span), *notes))
        moved = (replace(each, span=use) if each.span and is_prelude(each.span.source) else each for each in notes)
        return diagnostic.replace(notes=tuple(moved))

    def signature(
        self, declared: Op | Router, operands: tuple[TensorType, ...], pool: PoolTypes | None = None
    ) -> Signature:
        """An op, or the router of a pool, bound to the types of its operands. Raises `Misfit`."""
        known = self.signatures.get((declared, operands, pool))
        if known is None:
            if isinstance(declared, Router) and pool is not None:
                known = declared.bind_pool(pool, *operands)
            else:
                known = declared.bind(*operands)
            self.signatures[declared, operands, pool] = known
        return known

    def count(self, what: str, more: int, span: Span) -> None:
        """Add to what there is of a thing. Where that is too much, nothing more can be said."""
        self.counts[what] += more
        most, problem, way_out = LIMITS[what]
        if self.counts[what] > most:
            self.add_diagnostic(TooLarge(span=span, what=problem, limit=most, way_out=way_out))
            raise Abandoned

    def spend(self, steps: int, span: Span) -> None:
        """Count work, so that no text takes long: an expression is a step, and so is a member that is looked at."""
        self.counts["steps"] += steps
        if self.counts["steps"] > MOST_STEPS:
            self.count("steps", 0, span)

    @contextmanager
    def enter_modules(self, span: Span) -> Iterator[None]:
        """While the modules of a pool are elaborated, which belong to no call."""
        self.count("pools", 1, span)
        with self.enter_call(None):
            yield
        self.counts["pools"] -= 1

    @contextmanager
    def enter_application(self, written: Span, applied: Span) -> Iterator[None]:
        """While what is written at one place is applied at another, which mistakes in it then name too."""
        self.applied.append((written, applied))
        yield
        self.applied.pop()

    @contextmanager
    def enter_call(self, call: Call | None) -> Iterator[None]:
        """While nodes belong to a call."""
        outer, self.call = self.call, call
        yield
        self.call = outer

    @contextmanager
    def enter_use(
        self, kind: Kind, name: str, naming: Naming, span: Span, definition: ast.Definition | None = None
    ) -> Iterator[None]:
        """While a module, or the definition of a block or router, is elaborated where it is used."""
        self.count("uses", 1, span)
        self.active_blocks.append(id(definition))
        with self.enter_call(Call(kind, name, naming.node, naming.owner, self.call, span=span)):
            yield
        self.active_blocks.pop()
        self.counts["uses"] -= 1


def localize_axis_names(diagnostic: Diagnostic, scope: Scope, named: Mapping[str, Axis]) -> Diagnostic:
    """A message with axes called as the scope calls them or their pools, and those `named` by their words. Only paths
    are replaced: a name without a dot is one that a user wrote."""
    called = {axis.name: word for word, axis in named.items()}
    for name, value in (item for each in scope.chain() for item in each.names.items()):
        if isinstance(value, WithAxis):  # what is further in hides what is further out
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
