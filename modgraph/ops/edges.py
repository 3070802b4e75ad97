"""Edges as data: values at their ends, and what a node receives along them."""

from __future__ import annotations

from collections.abc import Iterable
from string import ascii_lowercase
from typing import Any, ClassVar

from modgraph.declare import Declaration, Operand, Signature, TorchModule, format_count, own_module, product, setting
from modgraph.declare.indexing import Indexing, Place, Reading, Use, everywhere, place_at
from modgraph.ops.op import Op
from modgraph.types import Axes, Axis, Joined, Misfit, Shape, TensorType, format_shape, join_axes, require_distinct

SOURCE, TARGET = "source", "target"
ENDS = (SOURCE, TARGET)
EDGE = "e"  # the letter of the axis of edges; other axes get other letters
BY_DENSITY, MESSAGE_PASSING, SCATTER = "by_density", "message_passing", "scatter"
LOWERINGS = {
    BY_DENSITY: "edges are data: torch_geometric message passing; sums by matrices where more than 1 in 24 pairs are "
    "joined, and by rows where a batch has few edges",
    MESSAGE_PASSING: "edges are data: torch_geometric message passing",
    SCATTER: "edges are data: rows are gathered at one end and added at the other",
}
HOW = "how it is computed; bundles and PyTorch source scatter"
RECEIVES = "the end of each edge that receives"
OF_EDGES = Operand("edges", "...", dtype="edge")
NODES = "nodes"
OF_NODES = Operand(NODES, "...", dtype="any", optional=True)


class EdgeOp(Op):
    """Base of ops on edges. A value over `nodes` is their last operand where nothing else has the nodes' axis; only its
    length counts."""

    nondifferentiable: ClassVar[tuple[str, ...]] = ("edges", NODES)
    takes_edges = True
    needs_nodes = False
    moves_edges = True  # a result at an edge may read other edges

    def end(self, edges: TensorType) -> Axis:
        """The axis of the nodes that receive."""
        return edges.ends[ENDS.index(vars(self).get("at", TARGET))]

    def lacks_nodes(self, found: tuple[TensorType, ...]) -> Axis | None:
        """The axis of nodes whose length no operand has; None where nothing is missing."""
        edges = next((type_ for type_ in found if type_.dtype == "edge"), None)
        if edges is None or not self.needs_nodes or self.end(edges).size is not None:
            return None
        return None if _find_nodes(found, self.end(edges)) else self.end(edges)

    def check_operands(self, found: tuple[TensorType, ...]) -> TensorType:
        """Check the operands' number and dtypes, and return the type of the edges. Raises `Misfit`."""
        fewest = sum(not each.optional for each in self.operands)
        if not fewest <= len(found) <= len(self.operands):
            names = ", ".join(each.name for each in self.operands[:fewest])
            advice = f"write ({names}) -> {self.name}" if fewest > 1 else f"write {names} -> {self.name}"
            raise Misfit(f"it takes {names}, not {format_count(len(found), 'operand')}", advice)
        for at, (operand, type_) in enumerate(zip(self.operands, found, strict=False)):
            if not operand.takes(type_.dtype):
                advice = "edges are an input or a constant of their type: input link: edge[node, node]"
                wanted = {"edge": "edges", "any": "numbers or ids"}.get(operand.dtype, operand.dtype)
                reason = f'operand "{operand.name}" must be {wanted}, not {type_}'
                raise Misfit(reason, advice if operand.dtype == "edge" else "", at)
            if type_.per == "batch":
                raise Misfit(f"it takes values of each example, not {type_}", "", at)
        return next(type_ for type_ in found if type_.dtype == "edge")

    def bind_nodes(self, axes: Axes, found: tuple[TensorType, ...], edges: TensorType) -> None:
        """Bind the number of receiving nodes: a size, or the operand that has their axis, and its place."""
        end = self.end(edges)
        place = _find_nodes(found, end)
        if end.size is None and place is None:
            raise Misfit(f'no value here has the axis "{end.name}", so the number of nodes is unknown', explain(end))
        axes.bound |= {"counted_": end.size if place is None else place}

    def list_masked_axes(self, signature: Signature) -> tuple[Axis, ...]:
        return tuple(type_.shape[0] for type_ in signature.operands if type_.dtype == "edge")

    def indexing(self, use: Use) -> Indexing:
        """Named axes other than those of edges and nodes are pointwise; along all others it reads everything."""
        signature = use.signature
        edges = next(type_ for type_ in signature.operands if type_.dtype == "edge")
        moved = {axis.name for axis in (*edges.shape[: self.moves_edges], *edges.ends)}
        result = signature.results[0].shape
        places = {axis.name: at - len(result) for at, axis in enumerate(result) if axis.name not in moved}
        names = self.slots_of(len(use.shapes))

        def read(axis: Axis) -> Place:
            return place_at(places[axis.name]) if axis.name and axis.name in places else everywhere(axis)

        values = ((at, shape) for at, shape in enumerate(use.shapes) if names[at] != NODES)
        return (tuple(Reading(at, tuple(map(read, shape))) for at, shape in values),)


def explain(end: Axis) -> str:
    """Explain how a body gets a value over an axis of nodes."""
    return f"use a value over the nodes in this body: input x: float[{end.name}, 8]"


def _find_nodes(found: Iterable[TensorType], end: Axis) -> tuple[int, int] | None:
    """Find the operand that has the axis of the nodes, and the place of the axis, counted from the last."""
    for at, type_ in enumerate(found):
        if type_.dtype != "edge" and end in type_.shape:
            return at, type_.shape.index(end) - len(type_.shape)
    return None


class _AtEnd(EdgeOp):
    """Base of the values at one end of each edge."""

    moves_edges = False
    nondifferentiable = ("edges",)
    operands = (Operand("x", "...", dtype="any"), OF_EDGES)
    module = own_module("position", "end_")

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        edges = self.check_operands(found)
        (x, _), at = found, ENDS.index(self.name.removeprefix("at_"))
        if edges.ends[at] not in x.shape:
            raise Misfit(f'{x} lacks the axis "{edges.ends[at].name}" of the {ENDS[at]}s of {edges}', "", 0)
        place = x.shape.index(edges.ends[at])
        axes.bound |= {"position": place - len(x.shape), "end_": at}
        return (x.with_shape(require_distinct((*x.shape[:place], edges.shape[0], *x.shape[place + 1 :]))),)

    def list_masked_axes(self, signature: Signature) -> tuple[Axis, ...]:
        return ()


EXAMPLE = "input x: float[node, 6] input link: edge[node, node] "


class AtSource(_AtEnd, name="at_source", synonyms="source_nodes edge_source lift gather_nodes copy_u"):
    """The value at the source of each edge: `(x, link) -> at_source` of float[node, 8] is float[link, 8]."""

    example = EXAMPLE + "y = (x, link) -> at_source z = (y, link) -> aggregate output z"


class AtTarget(_AtEnd, name="at_target", synonyms="target_nodes edge_target destination copy_v"):
    """The value at the target of each edge: `(x, link) -> at_target` of float[node, 8] is float[link, 8]."""

    example = EXAMPLE + "y = (x, link) -> at_target z = (y, link) -> aggregate output z"


class _Lowered(TorchModule):
    """The torch module of the chosen lowering."""

    def __get__(self, declaration: Declaration | None, kind: type[Declaration]) -> TorchModule:
        if declaration is not None and vars(declaration)["lowering"] == SCATTER:
            return TorchModule("modgraph.nn.EdgeScatter", *self.positional, **self.named)
        home = "modgraph.nn.message_passing.EdgeMessagePassing"
        return TorchModule(home, *self.positional, **self.named, by_density="by_density")


class EdgeRoute(EdgeOp):
    """Base of ops that send messages along edges and reduce them at each node."""

    module = _Lowered(
        "", "values_", "result_", end="end_", reads="reads_", counted="counted_", weights="weights_", reduce="reduce"
    )
    needs_nodes = True
    masks_each = True
    weighted = False

    @property
    def by_density(self) -> bool:
        """Whether each call picks how to compute it, by its numbers of edges and nodes."""
        return bool(vars(self)["lowering"] == BY_DENSITY)

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        edges = self.check_operands(found)
        x, edge, end = found[0], edges.shape[0], ENDS.index(vars(self)["at"])
        origin = edges.ends[1 - end]
        reads = edge not in x.shape
        if reads and origin not in x.shape:
            reason = f'{x} has neither the axis "{edge.name}" of the edges nor "{origin.name}" of the nodes that send'
            raise Misfit(reason, f"send a value over {origin.name}, or one over {edge.name}", 0)
        place = x.shape.index(origin if reads else edge)
        message = require_distinct((*x.shape[:place], edge, *x.shape[place + 1 :]))
        joined = Joined(message, tuple(range(len(message))), ())
        if self.weighted:
            joined = self._join_weights(message, found[2], edge)
        free = iter(ascii_lowercase.replace(EDGE, "").replace("z", ""))
        letters = [EDGE if axis == edge else next(free) for axis in joined.shape]
        named = {
            "values_": "".join(letters[at] for at in joined.left),
            "weights_": "".join(letters[at] for at in joined.right),
            "result_": "".join(letters),
        }
        axes.bound |= {**named, "end_": end, "reads_": reads, "products_": joined.shape if self.weighted else None}
        self.bind_nodes(axes, found, edges)
        shape = tuple(self.end(edges) if axis == edge else axis for axis in joined.shape)
        return (TensorType("float", require_distinct(shape)),)

    def _join_weights(self, message: Shape, weights: TensorType, edge: Axis) -> Joined:
        if edge not in weights.shape:
            advice = (
                f"make weights of values at both ends: (x, {edge.name}) -> at_source, (x, {edge.name}) -> at_target"
            )
            raise Misfit(
                f'the weights {format_shape(weights.shape)} lack the axis "{edge.name}" of the edges', advice, 2
            )
        joined = join_axes(message, weights.shape)
        if joined is None:
            reason = f"weights {format_shape(weights.shape)} do not fit messages {format_shape(message)}"
            raise Misfit(reason, "axes meet by name, plain ones from the last", 2)
        return joined

    def macs(self, products_: Any) -> int:
        return 0 if products_ is None else product(products_)


class Aggregate(
    EdgeRoute, name="aggregate", synonyms="scatter_add scatter_mean segment_sum message_passing graph_conv"
):
    """What each node receives along its edges: their sum, mean or largest message; zero without edges.

    `(x, link) -> aggregate` sends the value at the source of each edge to its target, float[node, 8] gives
    float[node, 8]. A value over the edges, float[link, 8], is sent as it is. `at="source"` sends the other way.
    """

    example = EXAMPLE + 'y = (x, link) -> aggregate("mean") output y'
    operands = (Operand("x", "..."), OF_EDGES, OF_NODES)

    reduce: str = setting("sum", choices=("sum", "mean", "max"), doc="the reduction over the edges of a node")
    at: str = setting(TARGET, choices=ENDS, doc=RECEIVES)
    lowering: str = setting(BY_DENSITY, choices=tuple(LOWERINGS), doc=HOW)


class Send(EdgeRoute, name="send", synonyms="propagate weighted_messages u_mul_e"):
    """Σ w x over the edges of each node: `(x, link, w) -> send`, which `x by w over link` means.

    The weights have the axis of the edges; other axes meet those of the messages by name, as in arithmetic.
    """

    example = EXAMPLE + "w = (x -> mean(axis=-1), link) -> at_source y = (x, link, w) -> send output y"
    operands = (Operand("x", "..."), OF_EDGES, Operand("weights", "..."), OF_NODES)
    weighted = True
    reduce = "sum"

    at: str = setting(TARGET, choices=ENDS, doc=RECEIVES)
    lowering: str = setting(BY_DENSITY, choices=tuple(LOWERINGS), doc=HOW)


class EdgeSoftmax(EdgeOp, name="edge_softmax", synonyms="segment_softmax scatter_softmax"):
    """A softmax over the edges of each node: `(scores, link) -> edge_softmax` of float[link, 4]."""

    example = EXAMPLE + "s = (x, link) -> at_source w = (s, link) -> edge_softmax y = (w, link) -> aggregate output y"
    operands = (Operand("scores", "..."), OF_EDGES, OF_NODES)
    module = own_module("position", "end_", "counted_")
    needs_nodes = True
    masks_each = True

    at: str = setting(TARGET, choices=ENDS, doc="the end whose edges share a softmax")

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        edges, scores = self.check_operands(found), found[0]
        if edges.shape[0] not in scores.shape:
            raise Misfit(f'{scores} lacks the axis "{edges.shape[0].name}" of the edges', "", 0)
        self.bind_nodes(axes, found, edges)
        axes.bound |= {"position": scores.shape.index(edges.shape[0]) - len(scores.shape)}
        axes.bound |= {"end_": ENDS.index(self.at)}
        return (scores,)


class Degree(EdgeOp, name="degree", synonyms="in_degree out_degree count_edges"):
    """The number of edges of each node: `link -> degree` counts those that end there, `degree(at="source")` those that
    begin there."""

    example = EXAMPLE + "d = link -> degree y = x * d output y"
    operands = (OF_EDGES, OF_NODES)
    module = own_module("end_", "counted_")
    needs_nodes = True
    masks_each = True

    at: str = setting(TARGET, choices=ENDS, doc="the end that counts")

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        edges = self.check_operands(found)
        self.bind_nodes(axes, found, edges)
        axes.bound |= {"end_": ENDS.index(self.at)}
        return (TensorType("float", (self.end(edges),)),)
