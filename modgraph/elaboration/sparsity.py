"""What is known of weights before anything is computed: which of them a choice leaves at zero."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from modgraph.diagnostics import Span
from modgraph.elaboration.apply import apply_op
from modgraph.elaboration.entities import OpUse, Poison, Tensor
from modgraph.elaboration.site import Site
from modgraph.ir import Graph, OpNode, Result
from modgraph.ops import Op
from modgraph.ops.along_axis import Max
from modgraph.types import Axis


@dataclass(frozen=True)
class Support:
    """A choice of at most `k` along an axis, any number if that is None, and what it was made by.

    Wherever the choice is zero, so are the weights, once it is `laid` as they are, by ops one after another, and its
    scores too; what slots chose has no scores of its own. `narrowed` counts what took something from the choice since
    it was made, `pure` says that the weights are nothing but the choice. Where it is `straight`, a gradient reaches
    what was not chosen too.
    """

    choice: Result
    scores: Result | None
    axis: Axis
    place: int  # of that axis in the weights, counted from the last
    k: int | None
    narrowed: int = 0
    pure: bool = True
    straight: bool = False
    laid: tuple[Op, ...] = ()
    scores_laid: tuple[Op, ...] = ()

    @property
    def width(self) -> tuple[float, int]:
        """Of two choices the lesser is the narrower."""
        return float("inf") if self.k is None else self.k, -self.narrowed


def support_of(weights: Result, graph: Graph) -> Support | None:
    """The narrowest choice behind weights, through whatever is zero where it is."""
    return _Supports(graph).of(weights)


def told(support: Support, weights: Tensor, site: Site) -> tuple[Tensor, Tensor] | Poison:
    """The scores and the choice behind weights, of their shape; what slots chose stands for its scores itself."""
    choice = _laid(support.choice, support.laid, weights.span, site)
    if support.scores is None or isinstance(choice, Poison):
        return choice if isinstance(choice, Poison) else (choice, choice)
    scores = _laid(support.scores, support.scores_laid, weights.span, site)
    return scores if isinstance(scores, Poison) else (scores, choice)


def _laid(result: Result, ops: tuple[Op, ...], span: Span | None, site: Site) -> Tensor | Poison:
    value = Tensor(result, site.graph.type_of(result), span)
    for op in ops:
        value = apply_op(OpUse(op), (value,), span, site)
        if isinstance(value, Poison):
            return value
    return value


def made_dense_by(weights: Result, graph: Graph) -> OpNode | None:
    """The op, nearest to weights, behind which a choice stands that its result is not zero beyond; None if there is no
    choice behind them."""
    supports, pending, seen = _Supports(graph), [weights], {weights}
    for result in pending:
        node = _op_of(result, graph)
        if node is None or supports.of(result) is not None:
            continue
        operands = [*graph.inputs(node.name).values()]
        if any(supports.of(each) is not None for each in operands):
            return node
        pending += [each for each in dict.fromkeys(operands) if each not in seen]
        seen.update(operands)
    return None


def _op_of(result: Result, graph: Graph) -> OpNode | None:
    """The op whose first result this is."""
    if result.node not in graph or result.index:
        return None
    node = graph[result.node]
    return node if isinstance(node, OpNode) else None


@dataclass(frozen=True)
class _Supports:
    """What is known of the results of a graph that were asked for, and of those that they are zero with."""

    graph: Graph
    known: dict[Result, Support | None] = field(default_factory=dict)

    def of(self, result: Result) -> Support | None:
        pending = [result]
        while pending:
            sources = [each for each in self._sources(pending[-1]) if each not in self.known]
            if sources:
                pending += sources
            else:
                top = pending.pop()
                self.known[top] = self._found(top)
        return self.known[result]

    def _sources(self, result: Result) -> list[Result]:
        """The operands that a result may be zero with."""
        node = _op_of(result, self.graph)
        if node is None or node.op.chosen(self.graph.signature(node)) is not None:
            return []
        operands = [*self.graph.inputs(node.name).values()]
        return [operands[place] for place in node.op.zero_with() if place < len(operands)]

    def _found(self, result: Result) -> Support | None:
        node = _op_of(result, self.graph)
        if node is None:
            return None
        made = node.op.chosen(self.graph.signature(node))
        if made is not None:
            place, k = made
            scores = next(iter(self.graph.inputs(node.name).values()))
            scores_ = scores if self.graph.type_of(scores).shape == node.types[0].shape else None
            return Support(result, scores_, node.types[0].shape[place], place, k)
        found = min(self._candidates(node), key=lambda each: each.width, default=None)
        return replace(found, choice=result, laid=()) if found is not None and found.pure else found

    def _candidates(self, node: OpNode) -> Iterator[Support]:
        """What is known of a result by each operand that it is zero with."""
        inputs = self.graph.inputs(node.name)
        for source in self._sources(Result(node.name)):
            support = self.known[source]
            if support is None:
                continue
            place = node.op.zero_along(self.graph.signature(node), support.place)
            if place is not None:
                yield from self._moved(support, node, place)
            elif self.graph.type_of(source).shape == node.types[0].shape:
                narrows = bool(node.op.narrows) and inputs[node.op.narrows] == source
                more, straight = support.narrowed + narrows, support.straight or node.op.straight
                yield replace(support, pure=support.pure and narrows, narrowed=more, straight=straight)

    def _moved(self, support: Support, node: OpNode, place: int) -> Iterator[Support]:
        """What is known of a result whose axes stand otherwise than those of its operand, or that has one less."""
        (before,), after = self.graph.signature(node).operands, node.types[0]
        if len(before.shape) == len(after.shape):
            laid, scores_laid = (*support.laid, node.op), (*support.scores_laid, node.op)
            yield replace(support, place=place, laid=laid, scores_laid=scores_laid)
            return
        position = self.graph.signature(node).axes["position"]
        slots, size = before.shape[position].size, support.axis.size
        if slots is not None:
            k = None if support.k is None or size is None or support.k * slots >= size else support.k * slots
            laid = (*support.laid, Max(axis=position))
            yield replace(support, place=place, k=k, scores=None, laid=laid, scores_laid=())
