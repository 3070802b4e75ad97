"""The torch modules that compute the nodes of a graph, one for each name of weights."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any

from torch import nn

from modgraph.backends.torch.construct import Namespace, build_expert, build_shared, construct, resolve
from modgraph.backends.torch.instance import Instance, class_of
from modgraph.backends.torch.large import LargePool
from modgraph.backends.torch.plan import CallSteps, Steps, steps_of
from modgraph.backends.torch.recurrences import CompiledRecurrence
from modgraph.backends.torch.regions import CompiledLoop, CompiledPool, CompiledScan, Expert
from modgraph.backends.torch.run import CompiledRoute, Step
from modgraph.backends.torch.stored import StoredPool
from modgraph.frozen import change_fields
from modgraph.ir import RECURRENCE, Body, Call, DecisionNode, Graph, GrowthNode, LossNode, Part, body_of
from modgraph.ir.analysis.division import divide_places
from modgraph.ir.node import Node, OpNode, PoolNode, Result, RouteNode, ScanNode
from modgraph.ir.program.outline import number_definitions
from modgraph.nn import DividedPool, Group, Parameter, Pool

Compute = Callable[..., Any]


class Nodes:
    """Registers the modules of a graph and its scans in a model, or those of a region in a pool's module.

    Nodes with one name of weights share a module. `shared` are the weights that the modules of a pool share. The
    processes of a `group` divide the pools.
    """

    def __init__(self, model: Namespace, shared: Namespace | None = None, group: Group | None = None) -> None:
        self.model = model
        self.shared = shared
        self.group = group
        self.made: dict[str, Any] = {}
        self.bodies: dict[str, Body] = {}  # the nodes of scans by name, and the model's own
        self.homes: dict[str, Namespace] = {}  # the innermost call of each node
        self.instances: dict[str, Instance] = {}  # by the path of their weights
        self.definitions: dict[Call, int] = {}
        self.classes: dict[int, type[Instance]] = {}  # by the number of the definition

    def steps(self, graph: Graph, author: Graph) -> Steps:
        """Make the steps of a model's graph; the steps of a call belong to an instance.

        All weights of the author's graph are registered, in its order, even if passes removed their nodes.
        """
        self.bodies[""] = body_of(graph)
        self.definitions = number_definitions(graph)
        self._open(graph, self.bodies[""], self.model)
        self.register(author, graph)
        steps = self._steps(Part(graph), self.bodies[""], graph.outputs.values())
        for path, instance in self.instances.items():
            if self.model.is_free(path):  # it contains no weights
                self.model.put(path, instance, self.instances)
        self.model.sort(rank_paths(author))
        return steps

    def register(self, graph: Graph, computed: Graph) -> None:
        """Register the modules with weights in the order of the author's graph, as the computed graph has them."""
        known = {node.name: node for node in computed}
        for node in graph:
            match node, known.get(node.name, node):
                case OpNode(), _ if node.op.all_weights():
                    self._op(graph, node)
                case _, PoolNode() as pool:
                    pool = change_fields(pool, stored=pool.stored and pool.name in known)
                    self._once(pool.name, partial(self._pool, pool))
                case RouteNode(), _:
                    self._router(graph, node)
                case ScanNode(), ScanNode() as scan:
                    self.register(node.region.graph, scan.region.graph)

    def computes(self, part: Part) -> dict[str, Compute]:
        """Map each node to the function that computes it."""
        graph, computes = part.graph, dict[str, Compute]()
        for node in graph:
            match node:
                case OpNode():
                    computes[node.name] = self._op(graph, node)
                case PoolNode():
                    self._once(node.name, partial(self._pool, node))
                case RouteNode():
                    computes[node.name] = self._route(part, node)
                case ScanNode():
                    computes[node.name] = self._scan(graph, node)
        return computes

    # ------------------------------------------------------------ calls

    def _open(self, graph: Graph, body: Body, home: Namespace) -> None:
        """Make the instances of the calls in a body, and in its scans."""
        for item in body.items:
            if isinstance(item, Body):
                self._open(graph, item, self._instance(item))
            elif isinstance(item, Node):
                self.homes[item.name] = home
            if isinstance(item, ScanNode):
                self.bodies[item.name] = body_of(item.region.graph, item.within)
                self._open(item.region.graph, self.bodies[item.name], home)

    def _instance(self, body: Body) -> Instance:
        call = body.call
        assert call is not None
        if call.weights not in self.instances:
            number = self.definitions[call]
            if number not in self.classes:
                self.classes[number] = class_of(call.definition, len(self.classes))
            self.instances[call.weights] = self.classes[number](call)
        return self.instances[call.weights]

    def _steps(self, part: Part, body: Body, ends: Any) -> Steps:
        graph = part.graph
        steps = {step.node: step for step in steps_of(graph, self.computes(part))}
        return self._steps_in(body, graph, steps, find_readers_in(graph, ends))

    def _steps_in(
        self, body: Body, graph: Graph, steps: dict[str, Step[Result]], readers: Readers
    ) -> list[Step[Result] | CallSteps]:
        found: list[Step[Result] | CallSteps] = []
        for item in body.items:
            if isinstance(item, Node) and item.name in steps:
                found.append(steps[item.name])
            elif isinstance(item, Body) and item.call is not None:
                names = dict.fromkeys(node.name for node in list_nodes_in(item) if node.name in steps)
                instance = self.instances[item.call.weights]
                inner = self._steps_in(item, graph, steps, readers)
                call = CallSteps(instance, inner, tuple(names), values_of(names.keys(), graph, readers))
                instance.steps = instance.steps or call
                found.append(call)
        return found

    # ------------------------------------------------------------ nodes

    def _op(self, graph: Graph, node: OpNode) -> Compute:
        """Make the function of an op: one for all uses of its weights, or one for each use without weights."""
        if node.owner in self.made:
            made = self.made[node.owner]
        else:
            made = self._keep(node, node.owner, build_expert(graph, node, self.shared))
        return made.like(len(graph.signature(node).operands[0].shape)) if isinstance(made, Parameter) else made

    def _keep(self, node: Node, name: str, made: Any) -> Any:
        """Register a module that has weights under a name. A module without weights only follows the training mode of
        its call."""
        if isinstance(made, Parameter) or has_tensors(made):
            return self._once(name, lambda: made)
        self.homes.get(node.name, self.model).functions.append(made)
        return made

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self.made:
            self.made[name] = self.model.put(name, make(), self.instances)
        return self.made[name]

    def _pool(self, node: PoolNode) -> Pool:
        """Make a pool, whose modules are compiled from its regions; of a divided one only the modules of this
        process."""
        shared, group = build_shared(node), self.group

        def computes(expert: Expert) -> dict[str, Compute]:
            return Nodes(expert, shared).computes(Part(expert.region.graph))

        if node.is_large:
            return LargePool(node, Expert(node.region(0), computes), shared)
        divides = group is not None and node.size >= group.size > 1
        if node.stored and not divides:
            return StoredPool(node, Expert(node.region(0), computes), shared)
        places = divide_places(node.size, group.size) if group is not None and divides else [range(node.size)]
        own = places[group.place if group is not None and divides else 0]
        pool = CompiledPool(node, [Expert(node.region(module), computes) for module in own], shared)
        if group is None or not divides:
            return pool
        return DividedPool(pool, places, group, unlike=not node.is_homogeneous)

    def _route(self, part: Part, node: RouteNode) -> CompiledRoute:
        graph = part.graph
        router, pool = graph.declaration_of(node), graph.pool_of(node)
        tokens = graph.type_of(graph.inputs(node.name)["tokens"])
        single = router.token_axis and len(tokens.shape) == len(pool.message.shape)
        return CompiledRoute(
            lowering=resolve(part.lowering_of(node).route)(),
            pool=self.made[pool.name],
            router=self._router(graph, node),
            single=single and not router.takes_one,
            takes_one=single and router.takes_one,
            records=len(node.types) - 1,
            result_rank=len(pool.result.shape),
            one_for_each_token=router.one_for_each == "sender",
            once=node.once == "scan",
        )

    def _router(self, graph: Graph, node: RouteNode) -> Any:
        name = graph.router_of(node).name
        return self.made.get(name) or self._keep(node, name, construct(graph.signature(node)))

    def _scan(self, graph: Graph, node: ScanNode) -> CompiledScan:
        region = Part(node.region.graph, node)
        steps = self._steps(region, self.bodies[node.name], node.region.results)
        made = CompiledRecurrence if node.lowering == RECURRENCE else CompiledLoop if node.final else CompiledScan
        return made(node, steps, list(graph.inputs(node.name)), self.model)


def has_tensors(module: nn.Module) -> bool:
    """Whether a module has weights or other tensors."""
    return any(True for _ in chain(module.parameters(), module.buffers()))


def list_nodes_in(body: Body) -> Iterator[Node]:
    """List the nodes of a body and of its calls, in order."""
    for item in body.items:
        if isinstance(item, Body):
            yield from list_nodes_in(item)
        elif isinstance(item, Node):
            yield item


Readers = dict[Result, set[str]]


def find_readers_in(graph: Graph, ends: Iterable[Result]) -> Readers:
    """Map each result to the nodes that read it for the ends, without nodes that only record or narrow it."""
    found: Readers = {end: {""} for end in ends}
    nodes = graph.ancestors(result.node for result in found) if found else {node.name for node in graph}
    for node in graph:
        if node.name in nodes and not isinstance(node, DecisionNode | GrowthNode | LossNode):
            for result in graph.inputs(node.name).values():
                found.setdefault(result, set()).add(node.name)
    return found


def values_of(names: Collection[str], graph: Graph, readers: Readers) -> tuple[Result, ...]:
    """List the results of some nodes that others read, for the ends or at all."""
    results = [Result(name, index) for name in names for index in range(len(graph[name].types))]
    values = [result for result in results if not readers.get(result, set()).issubset(names)]
    return tuple(values or [result for result in results if not {*graph.users(result.node)}.issubset(names)])


def rank_paths(graph: Graph) -> dict[str, int]:
    """Rank the paths of modules and weights by their first nodes; nodes of a scan count at its place."""
    ranks: dict[str, int] = {}
    for name in _places(graph, set()):
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            ranks.setdefault(".".join(parts[:end]), len(ranks))
    return ranks


def _places(graph: Graph, known: set[str]) -> Iterator[str]:
    for node in graph:
        match node:
            case OpNode():
                again = node.owner in known and not node.op.all_weights()
                known.add(node.owner)
                yield node.name if again else node.owner
            case RouteNode():
                yield graph.router_of(node).name
            case PoolNode():
                yield node.name
            case ScanNode():
                yield from _places(node.region.graph, known)
