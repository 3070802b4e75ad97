"""What one elaboration carries along: the report, the graph it builds, what was used, and the limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from modgraph.diagnostics import Diagnostic, Report, Span
from modgraph.diagnostics.diagnostic import MOST_CANDIDATES
from modgraph.elaboration.entities import Tensor
from modgraph.elaboration.errors import (
    DuplicateName,
    NotInRegion,
    SharedWithOtherShapes,
    SharedWithOtherWeights,
    TooLarge,
)
from modgraph.elaboration.scope import Naming, Scope
from modgraph.ir import Graph, InputNode, Node, PoolNode, Result, RouterNode
from modgraph.types import TensorType, shown

MOST_NODES = 30_000
MOST_ITERATIONS = 20_000
MOST_WEIGHTS = 200_000  # tensors, in all modules of all pools
MOST_AXES = 16
MOST_STEPS = 1_000_000  # of about two microseconds
STATEMENT, CALL, BLOCK, MISTAKE = 4, 4, 40, 200  # steps that these take besides those of their parts
OPERAND, RECORD, NAME = 8, 16, 10  # of an op, of a router, compared with a misspelt one
DEEPEST_USE = 50
MOST_ERRORS = 50


Observer = Callable[[Span, Any], None]  # told what stands at a place: a value, a module, a bound op


class Abandoned(Exception):
    """A limit is reached: nothing more can usefully be said."""


class Context:
    """The state of one elaboration."""

    def __init__(self, report: Report, observe: Observer = lambda span, value: None) -> None:
        self.report = report
        self.observe = observe
        self.used: set[str] = set()
        self.weights: dict[tuple[int, str], dict[str, tuple[int, ...]]] = {}
        self.named: dict[str, Node] = {}
        self.declared: dict[str, Span] = {}  # where each module, pool and router of the whole model is declared
        self.nodes = 0
        self.iterations = 0
        self.tensors = 0
        self.steps = 0
        self.depth = 0
        self.active_blocks: list[int] = []

    def tell(self, diagnostic: Diagnostic) -> None:
        self.report.add(diagnostic)
        self.steps += MISTAKE
        if len(self.report.errors) >= MOST_ERRORS:
            raise Abandoned

    def count_node(self, span: Span) -> None:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            self.tell(TooLarge(span=span, what="the graph has too many nodes", limit=MOST_NODES))
            raise Abandoned

    def count_iteration(self, span: Span) -> None:
        self.iterations += 1
        if self.iterations > MOST_ITERATIONS:
            self.tell(TooLarge(span=span, what="too many iterations in all", limit=MOST_ITERATIONS))
            raise Abandoned

    def count_weights(self, count: int, span: Span) -> None:
        self.tensors += count
        if self.tensors > MOST_WEIGHTS:
            self.tell(TooLarge(span=span, what="the model has too many tensors of weights", limit=MOST_WEIGHTS))
            raise Abandoned

    def spend(self, steps: int, span: Span) -> None:
        """Count work, so that no text takes long: an expression is a step, and so is a member that is looked at."""
        self.steps += steps
        if self.steps > MOST_STEPS:
            advice = "write fewer iterations or shorter lists"
            what = "the spec takes too many steps to work out"
            self.tell(TooLarge(span=span, what=what, limit=MOST_STEPS, way_out=advice))
            raise Abandoned

    def enter(self, span: Span) -> None:
        """Go into a module or block; `leave` comes out."""
        self.depth += 1
        if self.depth > DEEPEST_USE:
            what = "modules used inside modules are nested too deep"
            self.tell(TooLarge(span=span, what=what, limit=DEEPEST_USE, way_out="use fewer levels"))
            raise Abandoned

    def leave(self) -> None:
        self.depth -= 1


@dataclass
class BlockCall:
    """One use of a block while its body is elaborated: operands not yet taken, axes they bound, outputs so far."""

    name: str
    operands: list[Tensor]
    axes: dict[str, Any] = field(default_factory=dict)
    outputs: list[Any] = field(default_factory=list)


@dataclass
class ScanBody:
    """A scan while its body is elaborated: where it stands, what it has read of there, what it has yielded.

    `read` gives the inputs of the region that stand for results of the graph around it.
    """

    outer: Site
    read: dict[Result, str] = field(default_factory=dict)
    yields: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Site:
    """Where an expression stands: the graph it adds to, the names it sees, the names its nodes get.

    `call` is the use of the block it stands in, if it stands in one; `region` whether it is inside a pool's module;
    `scan` the scan whose body it is in.
    """

    context: Context
    graph: Graph
    scope: Scope
    naming: Naming
    call: BlockCall | None = None
    region: bool = False
    scan: ScanBody | None = None

    def tell(self, diagnostic: Diagnostic) -> None:
        self.context.tell(diagnostic)

    def visible(self, span: Span, wanted: Callable[[Any], bool] = lambda value: True) -> list[str]:
        """The names to suggest for a misspelt one; to compare it with many is work."""
        names = self.scope.visible(wanted)
        self.context.spend(NAME * min(len(names), MOST_CANDIDATES), span)
        return names

    def within(self, scope: Scope) -> Site:
        return replace(self, scope=scope)

    def under(self, naming: Naming) -> Site:
        return replace(self, naming=naming)

    def add(
        self,
        node: Node,
        span: Span,
        inputs: dict[str, Result] | None = None,
        uses: dict[str, str] | None = None,
    ) -> bool:
        """Add a node to the graph; false, with a message, if its name is taken."""
        if node.name in self.graph or (not self.region and node.name in self.context.named):
            advice = 'give it a name of its own: name="…"'
            self.tell(DuplicateName(span=span, name=node.name, way_out=advice))
            return False
        if self.region and any(result.node not in self.graph for result in (inputs or {}).values()):
            self.tell(NotInRegion(span=span, what="a value from outside"))
            return False
        if any(len(type_.shape) > MOST_AXES for type_ in node.types):
            self.tell(TooLarge(span=span, what="this value has too many axes", limit=MOST_AXES))
            return False
        self.context.count_node(span)
        self.context.spend(len(node.name), span)
        self.graph.add(node, {slot: self.reached(result, span) for slot, result in (inputs or {}).items()}, uses)
        if not self.region:
            self.context.named[node.name] = node
        return True

    def reached(self, result: Result, span: Span) -> Result:
        """A result as this graph has it: inside a scan, one of the graph around it comes in through an input."""
        if self.scan is None or result.node in self.graph:
            return result
        if result in self.scan.read:
            return Result(self.scan.read[result])
        name = f"outer.{result.node}" + (f".{result.index}" if result.index else "")
        while name in self.graph or name in self.context.named:
            name += "_"
        self.context.count_node(span)
        self.graph.add(InputNode(name=name, types=(self.scan.outer.graph.type_of(result),), span=span))
        self.scan.read[result] = name
        return Result(name)

    def shares(self, name: str) -> bool:
        """Whether a pool or router is in this graph; one that a scan or the graph around it has is taken over."""
        node = self.context.named.get(name)
        if not isinstance(node, PoolNode | RouterNode):
            return False
        if name not in self.graph:
            self.graph.add(node)
        return True

    def length_of(self, axis: str, span: Span) -> Result:
        """The input that carries the length of a symbolic axis, made when first needed."""
        if self.scan is not None:
            return self.scan.outer.length_of(axis, span)
        name = f"{axis}_length"
        if name not in self.graph:
            self.add(InputNode(name=name, types=(TensorType("length", (), None),), span=span), span)
        return Result(name)

    def agree_on_weights(self, owner: str, shapes: dict[str, tuple[int, ...]], span: Span) -> bool:
        """Whether the weights of an owner have the shapes its earlier uses gave them."""
        home = id(self.graph if self.scan is None else self.scan.outer.graph)
        earlier = self.context.weights.setdefault((home, owner), shapes)
        if earlier.keys() != shapes.keys():
            facts: Any = {"found": ", ".join(shapes) or "none", "earlier": ", ".join(earlier) or "none"}
            self.tell(SharedWithOtherWeights(span=span, name=owner, **facts))
            return False
        for name, shape in shapes.items():
            if earlier[name] != shape:
                self.tell(
                    SharedWithOtherShapes(
                        span=span, name=owner, weight=name, found=shown(shape), earlier=shown(earlier[name])
                    )
                )
                return False
        return True
