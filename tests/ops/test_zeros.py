"""Zeros through every op of the vocabulary: what a declaration says of them, against what its torch module computes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
import torch
from torch import Tensor, nn

import modgraph
from modgraph.backends.torch.construct import resolve
from modgraph.declare import Signature
from modgraph.ir import OpNode
from modgraph.ops import Op
from modgraph.ops.array import State
from modgraph.ops.compared import COMPARISONS
from modgraph.ops.zeros import ANYWHERE, Bound
from modgraph.types import TensorType
from tests.examples import OP_EXAMPLES

MORE = [
    *("x - z", "x * z", "z / x", "x ** 0.5", "x ** -1", "2 ** x", "x / 3", "3 / x", "x + 1", "1 - x", "x + v", "v * x"),
    *(f"x {sign} {right}" for sign in COMPARISONS for right in (-0.5, 0, 0.5)),
    *("x < z", "clamp(x, min=0)", "clamp(x, max=0)", "clamp(x, min=-1)", "clamp(x, min=0.5)", "clamp(x, max=-0.5)"),
    *("minimum(x, 0)", "maximum(x, 0)", "minimum(x, -1)", "maximum(x, 1)", "(x, z) -> minimum", "(x, z) -> maximum"),
    *("where(x, z, 0)", "where(x, 0, z)", "where(x, 1, 0)", "where(x, 0, 1)", "where(x, z, 2)", "where(x, z, x)"),
    *("(x, z, v) -> where", "(v, x) -> expand(-2)", "(x, z) -> concat", "(x, z) -> concat(axis=-2)", "(x, z) -> stack"),
    *("x -> transpose(-2, -1)", "x -> merge(-2, -1)", "x -> unmerge([2, 3])", "x -> new_axis(2)", "x -> flatten(1)"),
    *("x -> new_axis(2, at=-1)", "x -> new_axis(2, at=-2)", "u -> merge(-3, -2)", "u -> unmerge([2, 2], axis=-2)"),
    *("u -> sum(axis=-3)", "u -> max(axis=-1)", "u -> min(axis=-2)", "u -> last(axis=-3)", "u -> kth_largest(2)"),
    *("u -> select(1, axis=-3)", "u -> cumulative_sum(axis=-3)", "(x, z) -> contract", "(u, x) -> contract(axis=-2)"),
    *(
        "(x -> transpose, x -> select(0) -> top_k_indices(3)) -> lookup",
        "(x, x -> top_k_indices(4)) -> lookup(axis=-1)",
    ),
    *("u -> max_pool(3, padding=1)", "u -> upsample(size=[7, 9])", 'u -> upsample(size=[5, 6], mode="bilinear")'),
    *('u -> conv(2, dilation=2, padding="same")', "u -> conv_transpose(2, kernel=2, stride=3, output_padding=1)"),
    *("(x, z) -> training_or_inference", "x -> dropout(0.5)", "u -> avg_pool(2)"),
]
INPUTS = "input x: float[4, 6] input z: float[4, 6] input v: float[6] input u: float[3, 4, 6]"
TEXTS = [*OP_EXAMPLES.values(), *(f"model m() {{ {INPUTS} output y = {each} }}" for each in MORE)]


def ops() -> Iterator[tuple[OpNode, Signature]]:
    """Every op of every text that works on examples, each use once."""
    seen = set()
    for text in TEXTS:
        graph = modgraph.loads(text).ir
        for node in graph.nodes_of(OpNode):
            signature = graph.signature(node)
            of_examples = all(each.per == "example" for each in signature.operands)
            of_floats = signature.operands[0].dtype == "float" and "class" not in str(signature.operands)
            if of_examples and of_floats and not node.op.is_array and (node.op, signature.operands) not in seen:
                seen.add((node.op, signature.operands))
                yield node, signature


def label(use: tuple[OpNode, Signature]) -> str:
    return f"{use[0].op} of {', '.join(map(str, use[1].operands))}"


USES = {label(use): use for use in ops()}


def module_of(signature: Signature, training: bool = False) -> nn.Module:
    path, positional, named = signature.constructor()
    torch.manual_seed(0)
    made: nn.Module = resolve(path)(*positional, **named)
    for weight in (*made.parameters(), *made.buffers()):
        if weight.is_floating_point():
            weight.data.uniform_(0.5, 1.5)
    return made.double().train(training)


def results_of(signature: Signature, operands: list[Tensor], training: bool = False) -> tuple[Tensor, ...]:
    found = module_of(signature, training)(*operands)
    return found if isinstance(found, tuple) else (found,)


def dense(type_: TensorType, seed: int) -> Tensor:
    shape = (3, *(axis.size or 5 for axis in type_.shape))
    if type_.size is not None or type_.ends:
        return torch.randint(type_.size or 5, shape, generator=torch.Generator().manual_seed(seed))
    values = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return values.sign() * (values.abs() + 0.1)


def sparse(type_: TensorType, seed: int, bound: Bound = ANYWHERE) -> Tensor:
    values = dense(type_, seed)
    if type_.size is not None:
        return values
    if bound.place is None or bound.k is None:
        return values * (dense(type_, seed + 100) > 0)
    order = values.argsort(bound.place).argsort(bound.place)
    return values * (order < bound.k)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("training", [True, False])
def test_a_result_is_zero_where_the_declaration_says_so_of_one_operand(use: str, training: bool) -> None:
    node, signature = USES[use]
    for place in node.op.zero_with():
        if place >= len(signature.operands):
            continue
        operands = [dense(each, at) for at, each in enumerate(signature.operands)]
        operands[place] = sparse(signature.operands[place], 7)
        (result,) = results_of(signature, operands, training)
        if operands[place].shape == result.shape:
            assert not result[operands[place] == 0].any(), f"operand {place} is zero where the result is not"
        (result,) = results_of(signature, [each * (at != place) for at, each in enumerate(operands)], training)
        assert not result.any(), f"operand {place} is zero, and the result is not"


@pytest.mark.parametrize("use", USES)
def test_a_result_is_zero_where_what_an_op_makes_of_choices_is(use: str) -> None:
    node, signature = USES[use]
    places = range(len(signature.operands))
    for known in product([ANYWHERE, None], repeat=len(signature.operands)):
        made = node.op.propagate_choices(signature, known)
        if made is None:
            continue
        operands = [(dense if known[at] is None else sparse)(signature.operands[at], at) for at in places]
        as_is = node.op.taken_as_is
        choices = [operands[at] if at in as_is else (operands[at] != 0).double() for at in places]
        of_choices = results_of(made[0].bind(*signature.operands), choices)
        for result, choice in zip(results_of(signature, operands), of_choices, strict=True):
            assert choice.shape == result.shape and not (choice < 0).any()
            assert not result[choice == 0].any(), f"{made[0]} of choices is zero where the result is not"


@pytest.mark.parametrize("use", USES)
def test_a_choice_along_an_axis_stays_within_its_bound(use: str) -> None:
    node, signature = USES[use]
    bounds = [
        [None, *(Bound(-1 - at, k) for at in range(len(each.shape)) for k in (1, 2))] for each in signature.operands
    ]
    for known in product(*bounds):
        made = node.op.propagate_choices(signature, known)
        if made is None or made[1].place is None or made[1].k is None:
            continue
        op, bound = made
        operands = [
            dense(type_, at) if each is None else sparse(type_, at, each)
            for at, (type_, each) in enumerate(zip(signature.operands, known, strict=True))
        ]
        choices = [each if at in node.op.taken_as_is else (each != 0).double() for at, each in enumerate(operands)]
        for choice in results_of(op.bind(*signature.operands), choices):
            assert (choice != 0).sum(bound.place).max() <= bound.k, f"{known} gives more than {bound}"


@pytest.mark.parametrize("use", [use for use in USES if USES[use][0].op.zero_where() is not None])
def test_where_an_op_makes_zeros_neither_it_nor_its_gradient_is_anything_else(use: str) -> None:
    node, signature = USES[use]
    where = node.op.zero_where()
    assert where is not None
    place, op = where
    operands = [sparse(each, at).requires_grad_() for at, each in enumerate(signature.operands)]
    (result,) = results_of(signature, operands)
    (zero,) = results_of(op.bind(signature.operands[place]), [operands[place]])
    assert zero.any() and not result[zero.expand_as(result) == 1].any()
    if result.requires_grad and result.shape == zero.shape:
        (gradient,) = torch.autograd.grad(result.sum(), operands[place], allow_unused=True, materialize_grads=True)
        assert not gradient[zero == 1].any(), "a gradient reaches what the op leaves out"


@pytest.mark.parametrize("use", USES)
def test_an_op_that_keeps_zeros_says_so(use: str) -> None:
    """What is zero exactly where an operand is, and elsewhere not, follows from the declaration."""
    node, signature = USES[use]
    declared = bool(node.op.zero_with()) or node.op.choice_bound(signature) is not None or isinstance(node.op, State)
    known = (ANYWHERE,) * len(signature.operands)
    if declared or any(each.dtype != "float" for each in signature.results):
        return
    if node.op.propagate_choices(signature, known) is not None:
        return
    for place, type_ in enumerate(signature.operands):
        as_is = node.op.taken_as_is
        operands = [(sparse if at in as_is else dense)(each, at) for at, each in enumerate(signature.operands)]
        of_dense = results_of(signature, operands)
        operands[place] = sparse(type_, 9)
        for whole, result in zip(of_dense, results_of(signature, operands), strict=True):
            kept = whole.any() and (result == 0).sum() > (whole == 0).sum() and result.shape == operands[place].shape
            assert not (kept and not result[operands[place] == 0].any()), f"{use} keeps the zeros of operand {place}"


@pytest.mark.parametrize("sign", COMPARISONS)
@pytest.mark.parametrize("right", [-1.0, 0.0, 1.5, 2.0, 9.0])
@pytest.mark.parametrize("size", [1, 4, None])
def test_how_many_ranks_a_comparison_chooses_is_counted(sign: str, right: float, size: int | None) -> None:
    found = COMPARISONS[sign](right=right).choice_ranks(size)
    ranks = range(50 if size is None else size)
    satisfied = [rank for rank in ranks if eval(f"{rank} {sign} {right}")]
    if size is None and 49 in satisfied:
        assert found is None, "any number of them"
        return
    assert found is not None and found.count == len(satisfied)
    assert found.lowest == (satisfied == [*range(len(satisfied))])


def test_every_op_of_the_vocabulary_is_looked_at() -> None:
    of_float = {name for name, op in Op.registry.items() if all(each.dtype == "float" for each in op.operands)}
    missing = of_float - {node.op.name for node, _ in USES.values()}
    assert missing <= {"constant", "parameter", "state", "next_state", "keep_recent"}, "no functions of examples"
