"""Max pooling as it is trained on a processor, next to torch's own."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor

from modgraph.nn import MaxPool2d

SHAPES = ((3, 5, 8, 8), (2, 4, 7, 9), (5, 6, 6), (2, 3, 4, 6, 6), (0, 3, 4, 4))


def compare(x: Tensor, side: int) -> None:
    """Whether values and gradients are torch's, bit for bit."""
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    found = MaxPool2d(side, side).train()(ours)
    expected = F.max_pool2d(theirs.reshape(-1, *x.shape[-3:]), side).reshape(found.shape)
    assert torch.equal(found.nan_to_num(nan=7.0), expected.nan_to_num(nan=7.0)), "the same values"
    weights = torch.randn(found.shape, generator=torch.Generator().manual_seed(1))
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    assert ours.grad is not None and theirs.grad is not None
    assert torch.equal(ours.grad.nan_to_num(nan=7.0), theirs.grad.nan_to_num(nan=7.0)), "the same gradients"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("side", [2, 3])
def test_disjoint_windows_are_trained_with_the_numbers_of_torch(shape: tuple[int, ...], side: int) -> None:
    compare(torch.randn(shape, generator=torch.Generator().manual_seed(0)), side)


@pytest.mark.parametrize("value", [0.0, -torch.inf, torch.inf, torch.nan])
def test_equal_values_and_what_is_no_number_go_the_same_way(value: float) -> None:
    x = torch.randint(0, 3, (4, 6, 8, 8), generator=torch.Generator().manual_seed(0)).float()
    x[:, :, 2:5, 1:6] = value
    x[0] = value
    compare(x, 2)


def test_gradients_of_gradients_are_those_of_torch() -> None:
    x = torch.randn(2, 3, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    assert torch.autograd.gradgradcheck(MaxPool2d(2, 2).train(), (x,))
