"""Analyses which weights a choice sets to zero, before anything is computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from modgraph.elaboration.apply import Formula, apply_to, broadcast_to, compute, make_formula, ones_like
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import Poison, Tensor
from modgraph.ir import Graph, OpNode, Result
from modgraph.ops.arithmetic import Subtract
from modgraph.ops.choice import StraightThrough
from modgraph.ops.zeros import ANYWHERE, Bound
from modgraph.types import Axis, place_axes


@dataclass(frozen=True)
class Support:
    """A choice, the scores that it compares, and the `bound` on the number of places that it chooses along an axis.

    Wherever the choice is zero, so are the weights; a choice without scores compares itself. `narrowed` counts the ops
    that removed places from the choice. `pure` marks weights that are the choice itself. A `straight` choice passes
    gradients to the other places too. `made` distinguishes a choice that an op made from zeros of a function.
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
        """The axis along which it chooses, or None."""
        return None if self.bound.place is None else self.choice.type.shape[self.bound.place]

    @property
    def width(self) -> tuple[float, int]:
        """A key by which narrower choices come first."""
        return float("inf") if self.bound.k is None else self.bound.k, -self.narrowed


def find_support(weights: Result, graph: Graph) -> Support | None:
    """Find the narrowest choice behind weights, through ops that keep its zeros."""
    return _Supports(graph).find(weights)


def compute_choice(support: Support, weights: Tensor, elaborator: Elaborator) -> tuple[Tensor, Tensor] | Poison:
    """Compute the scores and the choice behind weights, in their shape; a choice without scores is both."""
    choice = compute(support.choice, weights.span, elaborator)
    if support.scores is None or isinstance(choice, Poison):
        return choice if isinstance(choice, Poison) else (choice, choice)
    scores = compute(support.scores, weights.span, elaborator)
    return scores if isinstance(scores, Poison) else (scores, choice)


def find_choice_end(weights: Result, graph: Graph, along: Axis | None = None) -> OpNode | None:
    """Find the op nearest to some weights that does not keep the zeros of a choice; None without a choice.

    For a choice `along` an axis, the search stops at ops with weights and at sums over other axes, which compute new
    values.
    """
    supports, pending, seen = _Supports(graph), [weights], {weights}
    for result in pending:
        node = _find_op(result, graph)
        if node is None or supports.find(result) is not None:
            continue
        rank = len(graph.type_of(result).shape)
        shapes = {each: graph.type_of(each).shape for each in graph.inputs(node.name).values()}
        operands = [each for each, shape in shapes.items() if along is None or (along in shape and len(shape) <= rank)]
        if any((support := supports.find(each)) is not None and support.made for each in operands):
            return node
        if along is None or not node.op.all_weights():
            pending += [each for each in operands if each not in seen]
        seen.update(operands)
    return None


def _find_op(result: Result, graph: Graph) -> OpNode | None:
    node = graph[result.node] if result.node in graph else None  # noqa: SIM401 (a graph is no dict)
    return node if isinstance(node, OpNode) else None


class _Supports:
    """Finds and caches the supports of a graph's results."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.known: dict[Result, Support | None] = {}

    def find(self, result: Result) -> Support | None:
        pending = [result]
        while pending:
            top, node = pending[-1], _find_op(pending[-1], self.graph)
            read = [] if node is None else [*self.graph.inputs(node.name).values()]
            if node is not None and (node.op.zero_with() or node.op.propagate is not None):
                unknown = [each for each in read if each not in self.known]
                pending += unknown
                if unknown:
                    continue
            supports = tuple(self.known.get(each) for each in read)
            self.known[top] = None if node is None else _Use(node, top, self.graph, supports).find_narrowest()
            pending.pop()
        return self.known[result]


class _Use:
    def __init__(self, node: OpNode, result: Result, graph: Graph, supports: tuple[Support | None, ...]) -> None:
        self.op = node.op
        self.result = result
        self.type = graph.type_of(result)
        self.graph = graph
        self.signature = graph.signature(node)
        self.inputs = graph.inputs(node.name)
        self.supports = supports

    @cached_property
    def operands(self) -> tuple[Formula, ...]:
        return tuple(make_formula(each, self.graph) for each in self.inputs.values())

    def find_narrowest(self) -> Support | None:
        """Return the support of the result: the choice of its op, or the narrowest of operands whose zeros it keeps."""
        bound = self.op.choice_bound(self.signature)
        if bound is not None:
            return self._find_choice(bound)
        candidates = [*self._operand_supports(), *self._joint_support()]
        found = min(candidates, key=lambda each: each.width, default=None) or self._own_zeros()
        return (
            replace(found, choice=make_formula(self.result, self.graph)) if found is not None and found.pure else found
        )

    def _find_choice(self, bound: Bound) -> Support:
        """Return the choice that the op makes, perhaps of ranks along an axis."""
        choice, first = make_formula(self.result, self.graph), self.operands[0]
        if bound.place is not None:
            return Support(choice, first if first.type.shape == self.type.shape else None, bound)
        node = _find_op(first.source, self.graph) if isinstance(first.source, Result) else None
        ranking = None if node is None else node.op.ranking(self.graph.signature(node))
        if node is not None and ranking is not None and first.type.shape == self.type.shape:
            ranks = self.op.choice_ranks(first.type.shape[ranking.place].size)
            if ranks is not None:
                (ranked,) = self.graph.inputs(node.name).values()
                by_scores = ranking.scores is not None and ranks.lowest
                scores = apply_to(ranking.scores, make_formula(ranked, self.graph)) if by_scores else None
                return Support(choice, scores, Bound(ranking.place, ranks.count))
        within = min(self._operand_supports(), key=lambda each: each.width, default=None)
        return Support(choice, None, ANYWHERE if within is None else within.bound)

    def _operand_supports(self) -> Iterator[Support]:
        """Iterate over the supports of operands whose zeros the result keeps elementwise, broadcast to the result."""
        slots, shape = [*self.inputs], self.type.shape
        for place in self.op.zero_with() if self.result.index == 0 else ():
            support = self.supports[place] if place < len(self.supports) else None
            at = None if support is None else place_axes(support.choice.type.shape, shape)
            if support is None or at is None:
                continue
            choice, scores = (
                None if each is None else broadcast_to(each, place, self.operands, self.type)
                for each in (support.choice, support.scores)
            )
            if choice is not None:
                narrows = bool(self.op.narrows) and slots[place] == self.op.narrows
                bound = support.bound
                bound = bound if bound.place is None else Bound(at[bound.place] - len(shape), bound.k)
                pure, narrowed = support.pure and narrows, support.narrowed + narrows
                straight = support.straight or isinstance(self.op, StraightThrough)
                yield Support(choice, scores, bound, narrowed, pure, straight, support.made)

    def _joint_support(self) -> Iterator[Support]:
        """Iterate over the support from all operands of an op that joins, moves or adds them."""
        known = [each for each in self.supports if each is not None]
        bounds = tuple(None if each is None else each.bound for each in self.supports)
        propagated = self.op.propagate_choices(self.signature, bounds)
        if propagated is None:
            return
        op, bound = propagated
        all_known, straight = len(known) == len(self.supports), any(each.straight for each in known)
        if all_known and len(known) > 1 and all(each.choice == known[0].choice for each in known):
            if known[0].choice.type.shape == self.type.shape:
                yield replace(min(known, key=lambda each: each.width), pure=False, straight=straight)
            return
        choices = [
            operand if place in self.op.taken_as_is else ones_like(operand) if support is None else support.choice
            for place, (operand, support) in enumerate(zip(self.operands, self.supports, strict=True))
        ]
        choice = apply_to(op, *choices, index=self.result.index)
        if choice is None:
            return
        size = None if bound.place is None else choice.type.shape[bound.place].size
        allows_all = size is not None and (bound.k or 0) >= size
        if allows_all and all(each.bound.k != bound.k for each in known):
            bound = Bound(bound.place)
        first, moves = known[0], len(self.type.shape) >= len(self.operands[0].type.shape) and op == self.op
        keeps_scores = len(self.supports) == 1 and moves and first.scores is not None and first.bound.k is not None
        yield Support(
            choice,
            apply_to(op, first.scores, index=self.result.index) if keeps_scores else None,
            bound,
            max(each.narrowed for each in known),
            all_known and op == self.op and all(each.pure for each in known),
            straight,
            any(each.made for each in known),
        )

    def _own_zeros(self) -> Support | None:
        where = self.op.zero_where()
        if where is None:
            return None
        place, op = where
        choice = apply_to(Subtract(left=1.0, right=None), apply_to(op, self.operands[place]))
        choice = choice and broadcast_to(choice, place, self.operands, self.type)
        return None if choice is None else Support(choice, None, ANYWHERE, pure=False, made=False)
