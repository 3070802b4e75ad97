"""The modules of a pool on the tape of a training step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from modgraph.declare import Signature, Use, Weight, numbers
from modgraph.inspect.cost import fixed, fixed_route_signature, fixed_signature
from modgraph.ir import Graph, Node, OpNode, PoolNode, Region, Result, RouteNode, alike, below
from modgraph.tape import Tape, Value

OnTape = Callable[[Graph, OpNode, Signature, tuple[Value, ...]], tuple[Value, ...]]
RouteOnTape = Callable[[Graph, RouteNode, tuple[Value, ...]], tuple[Value, ...]]


@dataclass(frozen=True)
class PoolOnTape:
    """A pool's modules; `weights` are those of the whole model by name, a pool's inside a pool below a `prefix`."""

    pool: PoolNode
    tape: Tape
    weights: Mapping[str, Value]
    lengths: Mapping[str, int]
    made: dict[tuple[Any, ...], Value] = field(default_factory=dict)
    prefix: str = ""

    @property
    def size(self) -> int:
        return self.pool.size

    @property
    def result(self) -> float:
        return numbers(fixed(self.pool.result, self.lengths), 1)

    # ------------------------------------------------------------ what routes ask for

    def slices(self, x: Value, edges: float) -> Value:
        each = edges / self.size
        parts = self.tape.parts(x, *[x.count / self.size] * self.size)
        return self.tape.copy(*(self._module(j, part, each) for j, part in enumerate(parts)))

    def rows(self, x: Value, rows: float) -> Value:
        if self.share_weights:
            return self._together(x, rows, self._by_rows)
        return self._beside(self.tape.parts(x, *[x.count / self.size] * self.size), rows)

    def all(self, x: Value, senders: float) -> Value:
        if self.share_weights:
            return self.rows(self.tape.view(x, x.count * self.size, passes=False), senders)
        return self._beside([x] * self.size, senders)

    def taken(self, x: Value, edges: float) -> Value:
        return self._together(x, edges / self.size, self._by_index)

    def kept(self, what: tuple[Any, ...], make: Callable[[], Value]) -> Value:
        key = (self.pool.name, *what)
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    # ------------------------------------------------------------ how a region runs

    @property
    def share_weights(self) -> bool:
        """Whether modules have weights in common, so that they run together."""
        ops = self.pool.region(0).graph.of_kind(OpNode)
        return (
            self.pool.alike
            and not self.pool.has_pools
            and any(weight.shared for node in ops for weight in node.op.all_weights())
        )

    def _beside(self, messages: Sequence[Value], rows: float) -> Value:
        """Each module on a message of its own, and their results side by side."""
        found = [self._module(j, each, rows) for j, each in enumerate(messages)]
        return self.tape.view(found[0]) if self.size == 1 else self.tape.copy(*found)

    def _module(self, module: int, x: Value, rows: float) -> Value:
        def op(graph: Graph, node: OpNode, signature: Signature, operands: tuple[Value, ...]) -> tuple[Value, ...]:
            times = 1 if node.name in once else rows
            return node.op.on_tape(Use(self.tape, signature, times, self._of(node, module)), *operands)

        once = alike(self.pool.region(module).graph)
        common: dict[tuple[Any, ...], Value] = {}

        def route(graph: Graph, node: RouteNode, operands: tuple[Value, ...]) -> tuple[Value, ...]:
            pool, router, prefix = graph.pool_of(node), graph.declaration_of(node), f"{self._place(str(module))}."
            assert node.lowering is not None, f"{node.name} is not lowered"
            names = [weight.name for weight in router.all_weights()]
            weights = {name: self.weights[below(prefix + graph.router_of(node).name, name)] for name in names}
            use = Use(self.tape, fixed_route_signature(graph, node, self.lengths), rows, weights)
            modules = replace(self, pool=pool, made=common, prefix=prefix)
            return router.on_tape(use, modules, node.lowering, *operands)

        return self._run(self.pool.region(module), x, op, route, (once, rows))

    def _together(self, x: Value, rows: float, write: Callable[..., tuple[Value, ...]]) -> Value:
        def op(graph: Graph, node: OpNode, signature: Signature, operands: tuple[Value, ...]) -> tuple[Value, ...]:
            return write(node, Use(self.tape, signature, rows * self.size, self._of(node, 0)), operands)

        return self._run(self.pool.region(0), x, op)

    def _by_rows(self, node: OpNode, use: Use, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        """One op of every module, each on its row; those that share weights do it together."""
        if not use.weights:
            return node.op.on_tape(use, *operands)
        if any(weight.shared for weight in node.op.all_weights()):
            return node.op.on_tape(Use(self.tape, use.signature, use.rows, self._stacked(node)), *operands)
        cut = [self.tape.parts(each, *[each.count / self.size] * self.size) for each in operands]
        rows = use.rows / self.size
        found = [
            node.op.on_tape(Use(self.tape, use.signature, rows, self._of(node, j)), *(each[j] for each in cut))
            for j in range(self.size)
        ]
        return tuple(self.tape.copy(*each) for each in zip(*found, strict=True))

    def _by_index(self, node: OpNode, use: Use, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        """One op on each edge, the weights of its module taken by index: copied for each."""
        if not use.weights:
            return node.op.on_tape(use, *operands)
        stacked = self._stacked(node)
        shared = {weight.name for weight in node.op.all_weights() if weight.shared}
        taken = {
            name: each if name in shared else self.tape.make(use.rows * each.count / self.size, each)
            for name, each in stacked.items()
        }
        return node.op.on_tape(Use(self.tape, use.signature, use.rows, taken), *operands)

    def _run(
        self,
        region: Region,
        x: Value,
        write: OnTape,
        route: RouteOnTape | None = None,
        once: tuple[Set[str], float] = (frozenset(), 1),
    ) -> Value:
        """The value of a region for a message. What some nodes make `once` is repeated for so many rows where it must
        stand for each."""
        (argument,) = region.arguments
        graph, values = region.graph, {Result(argument): x}
        for node in graph:
            operands = tuple(
                self._for_each_row(values[source], node, source.node, *once)
                for source in graph.inputs(node.name).values()
            )
            match node:
                case OpNode():
                    signature = fixed_signature(graph.signature(node), self.lengths, node.name)
                    results = write(graph, node, signature, operands)
                case RouteNode():
                    assert route is not None, "modules with pools run one by one"
                    results = route(graph, node, operands)
                case _:
                    continue
            values.update({Result(node.name, index): value for index, value in enumerate(results)})
        return values[region.results[0]]

    def _for_each_row(self, value: Value, node: Node, source: str, once: Set[str], rows: float) -> Value:
        """An operand of a node, as it takes it."""
        as_it_is = source not in once or (isinstance(node, OpNode) and (node.op.broadcasts or node.name in once))
        return value if as_it_is else self.tape.view(value, value.count * rows, passes=False)

    # ------------------------------------------------------------ weights

    def _of(self, node: OpNode, module: int) -> dict[str, Value]:
        return {weight.name: self.weights[self._name(node, weight, module)] for weight in node.op.all_weights()}

    def _stacked(self, node: OpNode) -> dict[str, Value]:
        """The weights of all modules as one, those that are shared as they are."""
        made = {}
        for weight in node.op.all_weights():
            own = [self.weights[self._name(node, weight, j)] for j in range(self.size)]
            made[weight.name] = own[0] if weight.shared else self.tape.copy(*own)
        return made

    def _name(self, node: OpNode, weight: Weight, module: int) -> str:
        place = "shared" if weight.shared and self.pool.alike else str(module)
        return below(f"{self._place(place)}.{node.owner}", weight.name)

    def _place(self, module: str) -> str:
        """Where the weights of a module stand, or those that all share."""
        return f"{self.prefix}{self.pool.name}.{module}"
