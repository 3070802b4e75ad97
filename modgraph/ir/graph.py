"""The typed graph."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from modgraph.declare import Signature
from modgraph.frozen import replace_fields
from modgraph.ir import node as kinds
from modgraph.ir.node import Inputs, Node, Result
from modgraph.ir.part import Decision, Part, bind_route
from modgraph.routers import Router
from modgraph.types import TensorType

if TYPE_CHECKING:
    import networkx

    from modgraph.ir.part import Region

N = TypeVar("N", bound=Node)
T = TypeVar("T")
Uses = Mapping[str, str]


def compute_once(function: Callable[[Graph], T]) -> Callable[[Graph], T]:
    """Decorate a function of a graph: it runs once for each, and again after a node was added."""

    @wraps(function)
    def find_or_compute(graph: Graph) -> T:
        if function not in graph._derived:
            graph._derived[function] = function(graph)
        found: T = graph._derived[function]
        return found

    return find_or_compute


class _Sources(NamedTuple):
    """The sources of a node: results by slot, its pool and router by role."""

    inputs: dict[str, Result]
    uses: dict[str, str]


class Graph:
    """A directed graph of nodes.

    Edges are results that flow into slots of a node, the pool and router of a route, and the lengths of padded axes,
    which follow from the declarations. Nodes are added with sources first; afterwards the graph never changes.
    """

    def __init__(self, name: str, parameters: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.parameters: dict[str, Any] = dict(parameters or {})
        self._nodes: dict[str, Node] = {}
        self._sources: dict[str, _Sources] = {}
        self._users: dict[str, dict[str, None]] = {}
        self._kinds: dict[type[Node], dict[str, Any]] = {}
        self._signatures: dict[str, Signature] = {}
        self._derived: dict[Callable[[Graph], Any], Any] = {}
        self.length_inputs: dict[str, str] = {}  # the inputs with lengths, by the name of the axis

    def __getstate__(self) -> dict[str, Any]:
        """Leave out of a pickle what follows from the rest."""
        return {**vars(self), "_derived": {}}

    # ------------------------------------------------------------ building

    def add(self, node: N, inputs: Inputs | None = None, uses: Uses | None = None, known: Signature | None = None) -> N:
        """Add a node with the results that flow into its slots, and the pool and router that it uses.

        `known` is the signature of an equal declaration, kept where its operands have the same types.
        """
        assert node.name not in self._nodes, f"two nodes are called {node.name}"
        self._derived.clear()
        inputs, uses = dict(inputs or {}), dict(uses or {})
        for source in (*[result.node for result in inputs.values()], *uses.values()):
            assert source in self._nodes or source in uses.values(), f"{node.name} reads {source}, which is not there"
            self._users.setdefault(source, {})[node.name] = None
        self._sources[node.name] = _Sources(inputs, uses)
        self._nodes[node.name] = node
        self._users.setdefault(node.name, {})
        self._kinds.setdefault(type(node), {})[node.name] = node
        if isinstance(node, kinds.InputNode) and node.types[0].dtype == "length":
            self.length_inputs[node.types[0].of] = node.name
        if known is not None and known.operands == tuple([self.type_of(each) for each in inputs.values()]):
            self._signatures[node.name] = known
        return node

    def add_typed(self, node: Node, inputs: Inputs, uses: Uses | None = None, known: Signature | None = None) -> None:
        """Add a node; infer the types of an op or a route from its operands. Raises `Misfit` if they do not fit.

        `known` is the signature of an op elsewhere, which holds here too for operands of the same types.
        """
        same = known is not None and isinstance(node, kinds.OpNode) and known.declaration is node.op
        self.add(node, inputs, uses, known if same else None)
        if isinstance(node, kinds.OpNode | kinds.RouteNode):
            types = self.signature(node).results
            if node.types != types:
                self.replace(replace_fields(node, types=types))

    def replace(self, node: Node) -> None:
        """Replace the node of the same name and kind, while the graph is built."""
        assert type(node) is type(self._nodes[node.name]), f"{node.name} is of another kind"
        self._derived.clear()
        self._nodes[node.name] = self._kinds[type(node)][node.name] = node

    # ------------------------------------------------------------ reading

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, name: str) -> Node:
        return self._nodes[name]

    def __iter__(self) -> Iterator[Node]:
        """Nodes in the order in which they were added, sources first."""
        return iter(self._nodes.values())

    def nodes_of(self, kind: type[N]) -> list[N]:
        """The nodes of one kind, sources first."""
        return [*self._kinds.get(kind, {}).values()]

    def inputs(self, name: str) -> Inputs:
        """The operands of a node, by slot, in order."""
        return self._sources[name].inputs

    def lengths(self, name: str) -> Inputs:
        """The lengths that a node reads, by the name of the padded axis."""
        known = self.length_inputs
        return {axis: Result(known[axis]) for axis in self.list_masked_axes(name) if axis in known} if known else {}

    def list_masked_axes(self, name: str) -> tuple[str, ...]:
        """The axes whose lengths a node needs to mask padding."""
        match node := self[name]:
            case kinds.OpNode() | kinds.RouteNode():
                declared = node.op if isinstance(node, kinds.OpNode) else self.declaration_of(node)
                return self.signature(node).padded if declared.may_mask else ()
            case kinds.ScanNode():
                steps = self.type_of(self.inputs(name)[node.variable]).shape[0]
                return (steps.lengths,) if steps.is_padded else ()
            case _:
                return ()

    def uses(self, name: str) -> Uses:
        """The pool and router of a route, a decision or a growth, by role."""
        return self._sources[name].uses

    def type_of(self, result: Result) -> TensorType:
        return self[result.node].types[result.index]

    def users(self, name: str) -> list[str]:
        return sorted(self._users[name])

    def ancestors(self, names: Iterable[str]) -> set[str]:
        """The given nodes and all nodes that they depend on."""
        return reach(names, lambda name: [source for source, _ in self._edges(name)])

    def descendants(self, names: Iterable[str]) -> set[str]:
        """The given nodes and all nodes that depend on them."""
        return reach(names, lambda name: self._users[name])

    def signature(self, node: kinds.OpNode | kinds.RouteNode) -> Signature:
        """The declaration of an op, or of a route's router, bound to the types of its operands."""
        known = self._signatures.get(node.name)
        if known is None:
            operands = [self.type_of(result) for result in self.inputs(node.name).values()]
            if isinstance(node, kinds.OpNode):
                known = node.op.bind(*operands)
            else:
                known = bind_route(self.declaration_of(node), self.pool_of(node), *operands)
            self._signatures[node.name] = known
        return known

    def find_signature(self, name: str) -> Signature | None:
        """The signature of a node if it is known already."""
        return self._signatures.get(name)

    def pool_of(self, route: kinds.RouteNode | kinds.DecisionNode | kinds.GrowthNode) -> kinds.PoolNode:
        pool = self[self.uses(route.name)["pool"]]
        assert isinstance(pool, kinds.PoolNode)
        return pool

    def router_of(self, route: kinds.RouteNode | kinds.DecisionNode | kinds.GrowthNode) -> kinds.RouterNode:
        router = self[self.uses(route.name)["router"]]
        assert isinstance(router, kinds.RouterNode)
        return router

    def declaration_of(self, route: kinds.RouteNode) -> Router:
        """The declaration of a route's router."""
        router = self.router_of(route).router
        assert isinstance(router, Router), f"{route.name} is no route of a router that is written in the language"
        return router

    def users_of(self, name: str) -> list[Node]:
        """The nodes that read or use a node, in the order of the graph; none if there is no such node."""
        return [self[user] for user in self._users.get(name, ())]

    def growths(self) -> list[kinds.GrowthNode]:
        """The growth nodes, in the order of the graph."""
        return self.nodes_of(kinds.GrowthNode)

    def parts(self) -> list[Part]:
        """This graph and the regions of its scans, also in scans: the graphs whose nodes have absolute names."""
        whole = Part(self)
        return [whole, *whole.inner()]

    def pools(self) -> dict[str, kinds.PoolNode]:
        """Every pool by name, in scans too, without pools inside pools."""
        return {pool.name: pool for part in self.parts() for pool in part.graph.nodes_of(kinds.PoolNode)}

    def modules(self) -> list[tuple[str, Region]]:
        """The regions of the modules of all pools, nested ones too, with their paths; one for a homogeneous pool."""
        return [found for pool in self.pools().values() for found in pool.modules()]

    def decisions(self, router: str | None = None) -> list[Decision]:
        """The decisions at routes and at uses of router texts, those in scans last; of one router if it is given."""
        return [each for part in self.parts() for each in part.decisions(router)]

    def records(self) -> dict[str, Result]:
        """The records of routers, by `label.record`; in a scan, stacked over the steps."""
        return {f"{each.label}.{name}": result for each in self.decisions() for name, result in each.results.items()}

    @property
    def input_types(self) -> dict[str, TensorType]:
        return {node.name: node.types[0] for node in self.nodes_of(kinds.InputNode)}

    @property
    def target_types(self) -> dict[str, TensorType]:
        return {node.name: node.types[0] for node in self.nodes_of(kinds.TargetNode)}

    @property
    def outputs(self) -> dict[str, Result]:
        """The results that are outputs, by label."""
        return {node.label: self.inputs(node.name)["x"] for node in self.nodes_of(kinds.OutputNode)}

    @property
    def losses(self) -> dict[str, Result]:
        return {node.name: self.inputs(node.name)["x"] for node in self.nodes_of(kinds.LossNode)}

    # ------------------------------------------------------------ identity

    def to_networkx(self) -> networkx.DiGraph[str]:
        """The graph for networkx: names with their `node`, edges with their `slots`.

        A slot is that of an operand, the role of a pool or router, or the axis of a length.
        """
        import networkx

        found: networkx.DiGraph[str] = networkx.DiGraph(name=self.name)
        found.add_nodes_from((node.name, {"node": node}) for node in self)
        for name in self._nodes:
            for source, slot in self._edges(name):
                known = found.edges[source, name]["slots"] if found.has_edge(source, name) else ()
                found.add_edge(source, name, slots=(*known, slot))
        return found

    def _edges(self, name: str) -> list[tuple[str, str]]:
        """The sources of a node, each with its slot."""
        found = [(each.node, slot) for read in (self.inputs, self.lengths) for slot, each in read(name).items()]
        return found + [(used, role) for role, used in self.uses(name).items()]

    def canonical(self) -> list[str]:
        """Node names in an order that depends only on the graph, sources first, decisions as early as possible."""
        import networkx

        def key(name: str) -> tuple[bool, str]:
            return not isinstance(self[name], kinds.DecisionNode), name

        return list(networkx.lexicographical_topological_sort(self.to_networkx(), key))

    @compute_once
    def hash(self) -> str:
        """A digest of the content (64 hexadecimal digits), equal for equal graphs whatever the spec's layout."""
        text = json.dumps(self._content(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def _content(self) -> list[Any]:
        """Nodes and edges, without the model's name and parameters."""
        from modgraph.ir.stored.nodes import nodes_to_json

        return nodes_to_json(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return self is other or self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self.hash())

    def __repr__(self) -> str:
        from modgraph.ir.text.write import heading

        return f"<Graph {heading(self)}: {len(self._nodes)} nodes>"

    def __str__(self) -> str:
        from modgraph.ir.text.write import to_text

        return to_text(self)


def reach(names: Iterable[str], following: Callable[[str], Iterable[str]]) -> set[str]:
    """The transitive closure of some names under `following`."""
    found = set(names)
    pending = list(found)
    while pending:
        new = [name for name in following(pending.pop()) if name not in found]
        found.update(new)
        pending += new
    return found
