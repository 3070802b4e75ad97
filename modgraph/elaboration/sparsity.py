"""What is known of weights before anything is computed: which of them a choice leaves at zero."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from modgraph.declare import Signature
from modgraph.elaboration.apply import Formula, apply_to, broadcast_to, compute, formula_of, ones_like
from modgraph.elaboration.entities import Poison, Tensor
from modgraph.elaboration.site import Site
from modgraph.ir import Graph, OpNode, Result
from modgraph.ops import Op
from modgraph.ops.arithmetic import Subtract
from modgraph.ops.choice import StraightThrough
from modgraph.ops.zeros import ANYWHERE, Bound, move_bound
from modgraph.types import Axis, TensorType, laid


@dataclass(frozen=True)
class Support:
    """A choice, the scores that it compares, and the `bound` of how many places it chooses along an axis.

    Wherever the choice is zero, so are the weights; a choice without scores is its own. `narrowed` counts the ops that
    removed places from the choice, `pure` says that the weights are the choice itself. Where it is `straight`, a
    gradient reaches the other places too. `made` says that an op chose; else a function is zero there.
    """

    choice: Formula
    scores: Formula | None
    bound: Bound
    narrowed: int = 0
    pure: bool = True
    straight: bool = False
    made: bool = True

    @property
    def axis(self) -> Axis | None:
        """The axis along which it chooses, if there is one."""
        return None if self.bound.place is None else self.choice.type.shape[self.bound.place]

    @property
    def width(self) -> tuple[float, int]:
        """Of two choices the lesser is the narrower."""
        return float("inf") if self.bound.k is None else self.bound.k, -self.narrowed


def support_of(weights: Result, graph: Graph) -> Support | None:
    """The narrowest choice behind weights, through whatever is zero where it is."""
    return _Supports(graph).of(weights)


def compute_choice(support: Support, weights: Tensor, site: Site) -> tuple[Tensor, Tensor] | Poison:
    """The scores and the choice behind weights, of their shape; a choice without scores is its own."""
    choice = compute(support.choice, weights.span, site)
    if support.scores is None or isinstance(choice, Poison):
        return choice if isinstance(choice, Poison) else (choice, choice)
    scores = compute(support.scores, weights.span, site)
    return scores if isinstance(scores, Poison) else (scores, choice)


def made_dense_by(weights: Result, graph: Graph, along: Axis | None = None) -> OpNode | None:
    """The op, nearest to weights, behind which a choice stands that its result is not zero beyond; None if there is no
    choice behind them. Of a choice along an axis none is meant from which weights, or sums over other axes, have
    computed new values."""
    supports, pending, seen = _Supports(graph), [weights], {weights}
    for result in pending:
        node = _op_of(result, graph)
        if node is None or supports.of(result) is not None:
            continue
        rank = len(graph.type_of(result).shape)
        shapes = {each: graph.type_of(each).shape for each in graph.inputs(node.name).values()}
        operands = [each for each, shape in shapes.items() if along is None or (along in shape and len(shape) <= rank)]
        if any(supports.is_choice(each) for each in operands):
            return node
        if along is None or not node.op.all_weights():
            pending += [each for each in operands if each not in seen]
        seen.update(operands)
    return None


def _op_of(result: Result, graph: Graph) -> OpNode | None:
    """The op that computes a result."""
    node = graph[result.node] if result.node in graph else None  # noqa: SIM401 (a graph is no dict)
    return node if isinstance(node, OpNode) else None


@dataclass(frozen=True)
class _Supports:
    """What is known of the results of a graph that were asked for, and of those that they are zero with."""

    graph: Graph
    known: dict[Result, Support | None] = field(default_factory=dict)

    def is_choice(self, result: Result) -> bool:
        """Whether a result is zero beyond the choice of an op."""
        support = self.of(result)
        return support is not None and support.made

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
        if node is None or not _may_be_zero(node.op):
            return []
        return [*self.graph.inputs(node.name).values()]

    def _found(self, result: Result) -> Support | None:
        node = _op_of(result, self.graph)
        if node is None:
            return None
        use = _Use(node, result.index, self.graph, self.graph.signature(node), self._operands(node))
        found = min(use.candidates(), key=lambda each: each.width, default=None)
        if found is None:
            return None
        return replace(found, choice=formula_of(result, self.graph)) if found.pure else found

    def _operands(self, node: OpNode) -> tuple[Support | None, ...]:
        return tuple(self.known.get(each) for each in self.graph.inputs(node.name).values())


def _may_be_zero(op: Op) -> bool:
    """Whether the result of an op may be zero because of an operand."""
    return bool(op.zero_with()) or op.propagate is not None


def _below(bound: Bound, type_: TensorType) -> Bound:
    """A bound without its number where that allows all places."""
    size = None if bound.place is None else type_.shape[bound.place].size
    return Bound(bound.place) if bound.k is not None and size is not None and bound.k >= size else bound


@dataclass(frozen=True)
class _Use:
    """An op of a graph, and the supports of its operands."""

    node: OpNode
    index: int
    graph: Graph
    signature: Signature
    supports: tuple[Support | None, ...]

    @property
    def type(self) -> TensorType:
        return self.node.types[self.index]

    @property
    def operands(self) -> tuple[Formula, ...]:
        return tuple(formula_of(each, self.graph) for each in self.graph.inputs(self.node.name).values())

    def candidates(self) -> list[Support]:
        """The supports of a result: the choice of its op, or those of operands whose zeros it keeps."""
        bound = self.node.op.chosen(self.signature)
        if bound is not None:
            return [self._chosen(bound)]
        found = [*self._operand_supports(), *self._joint_supports()]
        return found or [*self._own_zeros()]

    def _chosen(self, bound: Bound) -> Support:
        choice, scores = Formula(self.type, Result(self.node.name, self.index)), None
        if bound.place is not None:
            scores = self.operands[0] if self.operands[0].type.shape == self.type.shape else None
            return Support(choice, scores, bound)
        within = min(self._operand_supports(), key=lambda each: each.width, default=None)
        return self._support_of_ranks(choice) or Support(choice, None, ANYWHERE if within is None else within.bound)

    def _support_of_ranks(self, choice: Formula) -> Support | None:
        """The support of a comparison of ranks along an axis."""
        ranks, scores = self.operands[0], None
        node = _op_of(ranks.source, self.graph) if isinstance(ranks.source, Result) else None
        ranking = None if node is None else node.op.ranked(self.graph.signature(node))
        if node is None or ranking is None or ranks.type.shape != self.type.shape:
            return None
        chosen = self.node.op.chosen_ranks(ranks.type.shape[ranking.place].size)
        if ranking.scores is not None and chosen is not None and chosen.lowest:
            (ranked,) = self.graph.inputs(node.name).values()
            scores = apply_to(ranking.scores, formula_of(ranked, self.graph))
        return None if chosen is None else Support(choice, scores, Bound(ranking.place, chosen.count))

    def _operand_supports(self) -> Iterator[Support]:
        """The support of each operand whose zeros the result keeps, number by number."""
        op, slots = self.node.op, [*self.graph.inputs(self.node.name)]
        for place in op.zero_with():
            support = self.supports[place] if place < len(self.supports) else None
            if support is None or self.index:
                continue
            narrows = bool(op.narrows) and slots[place] == op.narrows
            more, straight = support.narrowed + narrows, support.straight or isinstance(op, StraightThrough)
            found = replace(support, pure=support.pure and narrows, narrowed=more, straight=straight)
            yield from self._broadcast(found, place)

    def _broadcast(self, support: Support, place: int) -> Iterator[Support]:
        """The support of an operand, broadcast to the result."""
        choice = broadcast_to(support.choice, place, self.operands, self.type)
        scores = broadcast_to(support.scores, place, self.operands, self.type) if support.scores is not None else None
        at = laid(support.choice.type.shape, self.type.shape)
        if choice is None or at is None:
            return
        bound = move_bound(support.bound, lambda axis: at[axis] - len(self.type.shape))
        yield replace(support, choice=choice, scores=scores, bound=bound)

    def _joint_supports(self) -> Iterator[Support]:
        """The support by all operands together, of an op that joins, moves or adds them."""
        known = [each for each in self.supports if each is not None]
        bounds = tuple(None if each is None else each.bound for each in self.supports)
        propagated = self.node.op.propagate_choices(self.signature, bounds) if known else None
        if propagated is None:
            return
        op, bound = propagated
        if len(known) == len(self.supports) > 1 and all(each.choice == known[0].choice for each in known):
            yield from self._shared_choice(known)
            return
        choices = [self._choice(place) for place in range(len(self.operands))]
        choice = apply_to(op, *choices, index=self.index)
        pure = len(known) == len(self.supports) and op == self.node.op and all(each.pure for each in known)
        facts = (max(each.narrowed for each in known), pure, any(each.straight for each in known))
        if choice is not None:
            bound = bound if any(bound.k == each.bound.k for each in known) else _below(bound, choice.type)
            yield Support(choice, self._scores(op), bound, *facts, made=any(each.made for each in known))

    def _shared_choice(self, known: list[Support]) -> Iterator[Support]:
        """The support of a result whose operands are zero beyond one and the same choice."""
        if known[0].choice.type.shape == self.type.shape:
            straight = any(each.straight for each in known)
            yield replace(min(known, key=lambda each: each.width), pure=False, straight=straight)

    def _choice(self, place: int) -> Formula | None:
        """The choice in place of an operand: that of its support, or ones."""
        support, operand = self.supports[place], self.operands[place]
        if place in self.node.op.taken_as_is:
            return operand
        return ones_like(operand) if support is None else support.choice

    def _scores(self, op: Op) -> Formula | None:
        """The scores of the choice, permuted by an op that only moves axes; None for other ops."""
        first = self.supports[0]
        moves = len(self.supports) == 1 and len(self.type.shape) >= len(self.operands[0].type.shape)
        if not moves or op != self.node.op or first is None or first.scores is None or first.bound.k is None:
            return None
        return apply_to(op, first.scores, index=self.index)

    def _own_zeros(self) -> Iterator[Support]:
        """The support of an op that gives zeros itself."""
        where = self.node.op.zero_where()
        if where is None:
            return
        place, op = where
        choice = apply_to(Subtract(left=1.0, right=None), apply_to(op, self.operands[place]))
        choice = choice and broadcast_to(choice, place, self.operands, self.type)
        if choice is not None:
            yield Support(choice, None, ANYWHERE, pure=False, made=False)
