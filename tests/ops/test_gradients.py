"""Operands that no gradient reaches, as declared, against what autograd gives."""

from __future__ import annotations

import pytest
import torch

from modgraph.ops import Op
from modgraph.ops.array import State
from modgraph.ops.op import Op as Base
from modgraph.ops.situation import StopGradient
from tests.ops.test_zeros import USES, dense, results_of, sparse

OF_OPERANDS = [
    name for name, (node, _) in USES.items() if not isinstance(node.op, State) and str(node.op) != "multiply(left=0.0)"
]


@pytest.mark.parametrize("use", OF_OPERANDS)
def test_a_gradient_reaches_the_operands_that_a_declaration_does_not_except(use: str) -> None:
    node, signature = USES[use]
    slots = node.op.slots_of(len(signature.operands))
    is_choice = node.op.choice_bound(signature) is not None
    as_is = node.op.taken_as_is
    given = [(sparse if at in as_is else dense)(each, at) for at, each in enumerate(signature.operands)]
    operands = [each.requires_grad_(each.is_floating_point()) for each in given]
    torch.manual_seed(0)
    results = [each for each in results_of(signature, operands, training=True) if each.requires_grad]
    total = sum(each.pow(2).sum() for each in results)
    for slot, operand in zip(slots, operands, strict=True):
        none = is_choice or slot in node.op.nondifferentiable or isinstance(node.op, StopGradient)
        found = None
        if isinstance(total, torch.Tensor) and operand.requires_grad:
            (found,) = torch.autograd.grad(total, [operand], retain_graph=True, allow_unused=True)
        assert (found is None or not found.any()) == none, f"{slot} of {use}"


def test_what_is_declared_names_operands() -> None:
    for name, op in Op.registry.items():
        names = {operand.name for operand in op.operands}
        assert {*op.nondifferentiable} <= names and op.takes_logits in {"", *names}, name
    assert not Base.nondifferentiable
