"""How each node of a graph is computed: torch modules, made once for each name of weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from modgraph.backends.torch.construct import Namespace, construct, expert_module, resolve, shared_parts
from modgraph.backends.torch.pool import CompiledPool, Expert
from modgraph.backends.torch.route import CompiledRoute
from modgraph.backends.torch.run import Step, plan
from modgraph.backends.torch.scan import CompiledScan
from modgraph.ir import Graph, OpNode, Part, PoolNode, RouteNode, ScanNode, alike
from modgraph.nn import Parameter


class Nodes:
    """Registers the modules of a graph and of its scans in a model, or those of a pool's module in it. Things of one
    name are one module; `shared` is what the modules of a pool have in common."""

    def __init__(self, model: Namespace, shared: Namespace | None = None) -> None:
        self.model = model
        self.shared = shared
        self.made: dict[str, Any] = {}

    def register(self, graph: Graph, computed: Graph) -> None:
        """Register what has weights in the order of the author's graph, each as it is computed."""
        known = {node.name: node for node in computed}
        for node in graph:
            match node, known.get(node.name, node):
                case OpNode(), _ if node.op.all_weights():
                    self._op(graph, node)
                case _, PoolNode() as pool:
                    self._once(pool.name, partial(self._pool, pool))
                case RouteNode(), _:
                    self._router(graph, node)
                case ScanNode(), ScanNode() as scan:
                    self.register(node.region.graph, scan.region.graph)

    def steps(self, part: Part) -> list[Step]:
        """The steps of a graph in order."""
        return plan(part.graph, self.computes(part), alike(part.graph))

    def computes(self, part: Part) -> dict[str, Callable[..., Any]]:
        """What computes each node."""
        graph, computes = part.graph, dict[str, Callable[..., Any]]()
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

    def _op(self, graph: Graph, node: OpNode) -> Callable[..., Any]:
        """What computes an op: one thing for all uses of its weights; without any each use has its own."""
        signature = graph.signature(node)
        shared = node.op.all_weights() or node.owner not in self.made
        make = partial(expert_module, graph, node, self.shared)
        made = self._once(node.owner if shared else node.name, make)
        return made.like(len(signature.operands[0].shape)) if isinstance(made, Parameter) else made

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self.made:
            self.made[name] = self.model.put(name, make())
        return self.made[name]

    def _pool(self, node: PoolNode) -> CompiledPool:
        """A pool whose modules are compiled from its regions."""
        shared = shared_parts(node)
        experts = [Expert(node.region(module), partial(_computes, shared)) for module in range(node.size)]
        return CompiledPool(node, experts, shared)

    def _route(self, part: Part, node: RouteNode) -> CompiledRoute:
        graph = part.graph
        router, pool = graph.declaration_of(node), graph.pool_of(node)
        tokens = graph.type_of(graph.inputs(node.name)["tokens"])
        single = router.senders and len(tokens.shape) == len(pool.message.shape)
        forms = (*router.lowerings(part.facts_of(node)), router.reference_form)
        form = next((form for form in forms if form.form == node.lowering), router.reference_form)
        return CompiledRoute(
            form=resolve(form.route)(),
            pool=self.made[pool.name],
            router=self._router(graph, node),
            single=single and not router.takes_one,
            alone=single and router.takes_one,
            records=len(node.types) - 1,
            result_rank=len(pool.result.shape),
            one_for_each_sender=router.one_for_each == "sender",
            shares=form.shares,
            through=pool.name,
        )

    def _router(self, graph: Graph, node: RouteNode) -> Any:
        return self._once(graph.router_of(node).name, partial(construct, graph.signature(node)))

    def _scan(self, graph: Graph, node: ScanNode) -> CompiledScan:
        return CompiledScan(node, self.steps(Part(node.region.graph, node)), list(graph.inputs(node.name)), self.model)


def _computes(shared: Namespace | None, expert: Expert) -> dict[str, Callable[..., Any]]:
    """What computes each node of a pool's module."""
    return Nodes(expert, shared).computes(Part(expert.region.graph))
