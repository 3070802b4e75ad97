"""The nodes of the graph: a closed set of kinds, each a small frozen value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from modgraph.declare import Initial, Record, Weight
from modgraph.diagnostics import Span
from modgraph.ops import Op
from modgraph.routers import Router, RouterFacts, RouterText
from modgraph.types import Axis, TensorType

if TYPE_CHECKING:
    from modgraph.ir.graph import Graph
    from modgraph.ir.part import Region

Kind = Literal["block", "router", "module", "round"]
Once = Literal["", "batch", "scan"]


@dataclass(frozen=True, eq=False)
class Call:
    """One use of a definition: a block, the text of a router, a module, or one round of a `repeat`.

    `definition` is what the author calls it: the name of the block, router, module or loop. Its nodes are called below
    `path`, its weights below `weights`. `key` is that of a round, `members` are the names that the loop's variable
    gives a key: `h` in `h[i] = …`. `outer` is the call that it stands in. Two calls are never equal.
    """

    kind: Kind
    definition: str
    path: str
    weights: str
    outer: Call | None = None
    key: int | str | None = None
    members: frozenset[str] = frozenset()
    span: Span | None = field(default=None, repr=False)

    def chain(self) -> Iterator[Call]:
        """This call and those around it, from the inside."""
        call: Call | None = self
        while call is not None:
            yield call
            call = call.outer


@dataclass(frozen=True, kw_only=True)
class Node:
    """Base of all nodes. `types` are those of its results, its value first; `within` is the call that it stands in, of
    a pool or a router the one that declares it. Neither it nor the span is part of equality."""

    kind: ClassVar[str]

    name: str
    types: tuple[TensorType, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)
    within: Call | None = field(default=None, compare=False, repr=False)

    def __init_subclass__(cls, kind: str) -> None:
        cls.kind = kind

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls that it stands in, from the inside."""
        return () if self.within is None else (*self.within.chain(),)


@dataclass(frozen=True, kw_only=True)
class InputNode(Node, kind="input"):
    """A value that the user gives; how long each example is along an axis of any length is one too."""


@dataclass(frozen=True, kw_only=True)
class TargetNode(Node, kind="target"):
    """A value that training compares with. The last `grown` of its classes were added to a model that was trained
    before."""

    grown: int = 0


@dataclass(frozen=True, kw_only=True)
class OpNode(Node, kind="op"):
    """One op. `owner` names whose weights it uses: its own name, or a module's that is used here.

    `initial` replaces the start of its first weight; `frozen` weights are not trained. A value that no example changes
    may be computed `once`, for a batch.
    """

    op: Op
    owner: str
    initial: Initial | None = None
    frozen: bool = False
    once: Once = ""


@dataclass(frozen=True, kw_only=True)
class PoolNode(Node, kind="pool"):
    """Modules of one interface: `size` copies of one region, or as many regions of unlike modules.

    A region is one module: it has one argument, the message, and one result. The last `grown` modules were added to a
    pool that was trained before: their own weights are trained even where the pool is frozen. `shares` names the pool
    whose axis its modules have too, if not one of their own. `inside` is the path of the modules that a pool inside a
    pool is part of: names in a region are relative, and axes of different pools must not meet.
    """

    size: int
    regions: tuple[Region, ...]
    grown: int = 0
    shares: str = ""
    inside: str = ""

    @property
    def axis(self) -> Axis:
        """The axis of its modules: its own, or that of the pool it shares."""
        return Axis(self.size, ".".join(filter(None, (self.inside, self.shares or self.name))))

    def path_of(self, region: int) -> str:
        """The path of a region, below which the axes of pools in it stand: one of its unlike modules is numbered."""
        path = ".".join(filter(None, (self.inside, self.name)))
        return path if self.is_homogeneous else f"{path}.{region}"

    @property
    def is_homogeneous(self) -> bool:
        return len(self.regions) == 1

    def region(self, module: int) -> Region:
        """What one module does."""
        return self.regions[0 if self.is_homogeneous else module]

    @property
    def has_pools(self) -> bool:
        """Whether its modules have pools of their own."""
        return any(region.graph.nodes_of(PoolNode) for region in self.regions)

    def modules(self) -> Iterator[tuple[str, Region]]:
        """The regions of its modules, those of pools inside them too, with the paths of these modules; one for all that
        are alike."""
        for at, region in enumerate(self.regions):
            yield self.path_of(at), region
            for pool in region.graph.nodes_of(PoolNode):
                yield from pool.modules()

    def graphs(self) -> list[Graph]:
        """The graphs of its regions, and of those of pools inside them."""
        return [region.graph for _, region in self.modules()]

    @property
    def over_batch(self) -> bool:
        """Whether a module's result for a message depends on its other messages."""
        return any(node.op.over_batch for graph in self.graphs() for node in graph.nodes_of(OpNode))

    @property
    def message(self) -> TensorType:
        """The type that each module takes."""
        return self.regions[0].argument_types[0]

    @property
    def result(self) -> TensorType:
        """The type that each module yields."""
        return self.regions[0].result_types[0]


@dataclass(frozen=True, kw_only=True)
class RouterNode(Node, kind="router"):
    """A router: its settings and weights, whichever routes use it. One that is written in the language has none of its
    own: those of the ops of its body stand below its name."""

    router: Router | RouterText
    frozen: bool = False

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Those of its own."""
        return self.router.all_weights() if isinstance(self.router, Router) else ()


@dataclass(frozen=True, kw_only=True)
class RouteNode(Node, kind="route"):
    """A place where a router sends messages through a pool. `lowering` is the form that is chosen to compute it,
    `label` what users know it by, if that is not its name. Computed `once` is its value, for a batch, where no example
    changes it, or the stacked weights of its modules, for all steps of a scan."""

    lowering: str | None = None
    once: Once = ""
    label: str = ""


@dataclass(frozen=True, kw_only=True)
class DecisionNode(Node, kind="decision"):
    """What a router that is written in the language decides at one use of it. Nothing comes out of it: ops and routes
    of the router's body compute all that flows in, and what reads the use reads that.

    `tokens` are what is routed, `value` is what the use yields, and each record has a slot for each of the `rounds`:
    one of its name for the last, those of earlier ones numbered from 1. Axes have the names that the body gives them.
    `label` is what users know the use by, if that is not its name.
    """

    label: str = ""
    records: tuple[Record, ...] = ()
    rounds: int = 1
    facts: RouterFacts = field(default_factory=RouterFacts)

    @property
    def slots(self) -> tuple[str, ...]:
        """What flows in, in order."""
        rounds = (self.rounds, *range(1, self.rounds))
        return ("tokens", "value", *(self.slot(each.name, at) for at in rounds for each in self.records))

    def slot(self, record: str, at: int) -> str:
        """The slot of a record in a round, counted from 1."""
        return record if at == self.rounds else f"{record}.{at}"


@dataclass(frozen=True, kw_only=True)
class GrowthNode(Node, kind="growth"):
    """When a pool is to grow, as a training over several tasks asks: `when` flows in, a number for the whole batch, and
    zero says no. It uses the pool and a router that the pool is used by; nothing comes out of it."""


@dataclass(frozen=True, kw_only=True)
class ScanNode(Node, kind="scan"):
    """A region run once for each step of a sequence's first axis, with the same weights.

    The region's arguments are one step's slice, the `carried` states, then values from outside; its results are the
    next values of the states, then what is stacked over time, the results of the scan: what is yielded, and what
    routes record. What flows into a scan does so in the slot called as the argument; a state without any begins at
    zero. Weights are called by their names in the whole model, so that pools, routers and modules may be those of the
    graph around it. Past the length of an example, states stay and results are zero.
    """

    region: Region
    carried: int = 0

    @property
    def variable(self) -> str:
        """The argument that is one step of the sequence."""
        return self.region.arguments[0]

    @property
    def states(self) -> tuple[str, ...]:
        """The arguments that are carried from step to step."""
        return self.region.arguments[1 : 1 + self.carried]

    @property
    def captured(self) -> tuple[str, ...]:
        """The arguments that are values from outside, the same at each step."""
        return self.region.arguments[1 + self.carried :]

    @property
    def following(self) -> tuple[Result, ...]:
        """The next value of each state."""
        return self.region.results[: self.carried]

    @property
    def stacked(self) -> tuple[Result, ...]:
        """What a step gives for each of the scan's results."""
        return self.region.results[self.carried :]


@dataclass(frozen=True, kw_only=True)
class OutputNode(Node, kind="output"):
    """A value that the model yields. `label` is what users know it by."""

    label: str


@dataclass(frozen=True, kw_only=True)
class LossNode(Node, kind="loss"):
    """A number that training makes small, known by the name of the node."""


@dataclass(frozen=True)
class Result:
    """One result of a node: an edge's source."""

    node: str
    index: int = 0

    def __str__(self) -> str:
        return self.node if self.index == 0 else f"{self.node}:{self.index}"


Inputs = Mapping[str, Result]  # what flows into the slots of a node
