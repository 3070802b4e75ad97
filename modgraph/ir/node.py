"""The nodes of a graph: a closed set of kinds, each a small frozen value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from modgraph.declare import Initial, Record, Weight
from modgraph.diagnostics import Span
from modgraph.ops import Op
from modgraph.routers import NAMED_MODULES, Router, RouterFacts, RouterText
from modgraph.types import Axis, Shape, TensorType, count_shared_axes

if TYPE_CHECKING:
    from modgraph.ir.graph import Graph
    from modgraph.ir.part import Region

Kind = Literal["block", "router", "module", "round"]
Once = Literal["", "batch", "scan"]
EACH = "*"  # stands for every module of a large pool in names of weights
RECURRENCE = "recurrence"  # the lowering of a scan that computes all steps at once


@dataclass(frozen=True, eq=False)
class Call:
    """One use of a definition: a block, a router text, a module, or one round of a `repeat`.

    `definition` is the author's name for the block, router, module or loop. Names of its nodes begin with `path`, names
    of its weights with `weights`. `key` is that of a round; `members` are the names that the loop indexes: `h` in
    `h[i] = …`. `outer` is the surrounding call. Two calls are never equal.
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
        """This call and the calls around it, from the inside."""
        call: Call | None = self
        while call is not None:
            yield call
            call = call.outer


@dataclass(frozen=True, kw_only=True)
class Node:
    """Base of nodes. `types` are the types of its results, the value first.

    `within` is the call that contains the node; for a pool or a router, the call that declares it. Equality ignores
    `within` and `span`.
    """

    kind: ClassVar[str]

    name: str
    types: tuple[TensorType, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)
    within: Call | None = field(default=None, compare=False, repr=False)

    def __init_subclass__(cls, kind: str) -> None:
        cls.kind = kind

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls that contain the node, from the inside."""
        return () if self.within is None else (*self.within.chain(),)


@dataclass(frozen=True, kw_only=True)
class InputNode(Node, kind="input"):
    """A value that the user gives, or the lengths of examples along a padded axis."""


@dataclass(frozen=True, kw_only=True)
class TargetNode(Node, kind="target"):
    """A value that losses compare with. The last `grown` of its classes were added to a trained model."""

    grown: int = 0


@dataclass(frozen=True, kw_only=True)
class OpNode(Node, kind="op"):
    """One op. `owner` is the prefix of its weights: its own name, or that of a module that it shares.

    `initial` replaces the initialiser of its first weight; `frozen` weights do not train. `once` says that the value is
    computed once for a batch.
    """

    op: Op
    owner: str
    initial: Initial | None = None
    frozen: bool = False
    once: Once = ""


@dataclass(frozen=True, kw_only=True)
class PoolNode(Node, kind="pool"):
    """Modules of one interface: one region for a homogeneous pool of `size` modules, or a region for each.

    The region of a module has one argument, the message, and one result. The last `grown` modules were added to a
    trained pool: their own weights train even if the pool is frozen. `shares` names the pool whose axis of modules this
    pool uses, if not its own. `inside` is the path of the modules that contain a nested pool: it keeps the axes of
    pools apart, since names in a region are relative. A `stored` pool has one tensor for each weight of a module.
    """

    size: int
    regions: tuple[Region, ...]
    grown: int = 0
    shares: str = ""
    inside: str = ""
    stored: bool = False

    @property
    def axis(self) -> Axis:
        """The axis of its modules: its own, or that of the pool that it shares."""
        return Axis(self.size, ".".join(filter(None, (self.inside, self.shares or self.name))))

    def path_of(self, region: int) -> str:
        """The path of a region, a prefix for axes of pools in it; numbered unless the pool is homogeneous."""
        path = ".".join(filter(None, (self.inside, self.name)))
        return path if self.is_homogeneous else f"{path}.{region}"

    @property
    def is_homogeneous(self) -> bool:
        """Whether all modules are equal but for weights."""
        return len(self.regions) == 1

    @property
    def is_large(self) -> bool:
        """Whether each weight of its modules is listed once, as a tensor with a row for each module."""
        return self.is_homogeneous and self.size > NAMED_MODULES

    @property
    def keys(self) -> Sequence[str]:
        """The keys of its modules in names of weights: their numbers, or a star for all of a large pool."""
        return (EACH,) if self.is_large else [str(module) for module in range(self.size)]

    def region(self, module: int) -> Region:
        """The region of one module."""
        return self.regions[0 if self.is_homogeneous else module]

    @property
    def has_pools(self) -> bool:
        """Whether its modules contain pools."""
        return any(region.graph.nodes_of(PoolNode) for region in self.regions)

    def modules(self) -> Iterator[tuple[str, Region]]:
        """The regions of its modules and of nested pools, with their paths; one for a homogeneous pool."""
        for at, region in enumerate(self.regions):
            yield self.path_of(at), region
            for pool in region.graph.nodes_of(PoolNode):
                yield from pool.modules()

    def graphs(self) -> list[Graph]:
        """The graphs of its regions, and of those of nested pools."""
        return [region.graph for _, region in self.modules()]

    @property
    def over_batch(self) -> bool:
        """Whether a module's result for a message depends on its other messages."""
        return any(node.op.over_batch for graph in self.graphs() for node in graph.nodes_of(OpNode))

    @property
    def message(self) -> TensorType:
        """The type of a message."""
        return self.regions[0].argument_types[0]

    @property
    def result(self) -> TensorType:
        """The type of a module's result."""
        return self.regions[0].result_types[0]


@dataclass(frozen=True, kw_only=True)
class RouterNode(Node, kind="router"):
    """A router: its settings and weights, whichever routes use it.

    A router text has no weights of its own: names of the weights of its ops begin with its name.
    """

    router: Router | RouterText
    frozen: bool = False

    @property
    def weights(self) -> tuple[Weight, ...]:
        """The weights that its declaration has."""
        return self.router.all_weights() if isinstance(self.router, Router) else ()


@dataclass(frozen=True, kw_only=True)
class RouteNode(Node, kind="route"):
    """A use of a router on a pool. `lowering` is the name of its lowering, `label` its name for users if it differs.

    `once` says what is computed once: its value for a batch, or the stacked weights of its modules for a scan.
    """

    lowering: str | None = None
    once: Once = ""
    label: str = ""


@dataclass(frozen=True, kw_only=True)
class DecisionNode(Node, kind="decision"):
    """The decision of a router text at one use, or of a route by ids. It has no results: the ops of the router's body,
    or of the weights, compute its operands.

    Its slots are `tokens`, the `value` of the use, and a slot for each record and each of the `rounds`: the last round
    has the record's name, earlier ones are numbered from 1. Axes have the names of the body. `label` is the name of the
    use for users, if it differs.
    """

    label: str = ""
    records: tuple[Record, ...] = ()
    rounds: int = 1
    facts: RouterFacts = field(default_factory=RouterFacts)

    @property
    def slots(self) -> tuple[str, ...]:
        """The slots of its operands, in order."""
        rounds = (self.rounds, *range(1, self.rounds))
        return ("tokens", "value", *(self.slot(each.name, at) for at in rounds for each in self.records))

    def slot(self, record: str, at: int) -> str:
        """The slot of a record in a round, counted from 1."""
        return record if at == self.rounds else f"{record}.{at}"


@dataclass(frozen=True, kw_only=True)
class GrowthNode(Node, kind="growth"):
    """The growth rule of a pool, for continual training: the pool grows if the operand `when`, one number for a batch,
    is not zero. It uses the pool and a router of it, and has no results."""


@dataclass(frozen=True, kw_only=True)
class ScanNode(Node, kind="scan"):
    """A region that runs once for each step of a sequence's first axis, with the same weights.

    The region's arguments are a step's slice, the `carried` states, then captured values. Its results are the next
    states, then the results of the scan, which are stacked over time: yielded values and records of routes. A slot of
    the scan has the name of the argument; a state without an operand starts at zero. Weights have absolute names, so
    the region may use pools, routers and modules of the surrounding graph. From the length of an example on, states
    stay and results are zero. With the `lowering` "recurrence" all steps are computed at once, else one after another.

    If the first `final` results are final, the scan ends by a value: the region gives `going` before the results. Its
    entries, one for each example or token, go on while it is not zero. From then on their states stay, final results
    are those of their last step, and stacked ones are zero. When none goes on, no further step is computed.
    """

    region: Region
    carried: int = 0
    final: int = 0
    lowering: str = ""

    @property
    def variable(self) -> str:
        """The argument with one step of the sequence."""
        return self.region.arguments[0]

    @property
    def states(self) -> tuple[str, ...]:
        """The arguments that carry states from step to step."""
        return self.region.arguments[1 : 1 + self.carried]

    @property
    def captured(self) -> tuple[str, ...]:
        """The arguments with captured values, equal at each step."""
        return self.region.arguments[1 + self.carried :]

    @property
    def following(self) -> tuple[Result, ...]:
        """The next value of each state."""
        return self.region.results[: self.carried]

    @property
    def going(self) -> Result | None:
        """The value that is zero for entries that end with a step, if the scan ends by a value."""
        return self.region.results[self.carried] if self.final else None

    @property
    def steering(self) -> tuple[Result, ...]:
        """The results of a step that change later steps."""
        return self.region.results[: self.carried + bool(self.final)]

    @property
    def stacked(self) -> tuple[Result, ...]:
        """The results of a step that the scan gives: stacked, but for the first `final`."""
        return self.region.results[self.carried + bool(self.final) :]

    def count_own_axes(self, result: Result) -> int:
        """Count the first axes of a result of a step that are those of the entries that end by themselves."""
        assert self.going is not None
        return count_shared_axes(*(self.region.graph.type_of(each).shape for each in (self.going, result)))

    @property
    def steps(self) -> Shape:
        """The axis of steps that stacked results have in front; none without such results."""
        return self.types[self.final].shape[:1] if self.final < len(self.types) else ()


@dataclass(frozen=True, kw_only=True)
class OutputNode(Node, kind="output"):
    """An output of the model. `label` is its name for users."""

    label: str


@dataclass(frozen=True, kw_only=True)
class LossNode(Node, kind="loss"):
    """A number that training minimises."""


@dataclass(frozen=True)
class Result:
    """One result of a node: an edge's source."""

    node: str
    index: int = 0

    def __str__(self) -> str:
        return self.node if self.index == 0 else f"{self.node}:{self.index}"


Inputs = Mapping[str, Result]  # the operands of a node, by slot
