"""Attention of papers, written as a route between tokens: values, gradients and padding against their equations."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import Tensor

import modgraph

HOME = Path(__file__).parent
LENGTHS = (40, 17, 1)


def gpt_oss(w: dict[str, Tensor], x: Tensor) -> Tensor:
    """Query by query and head by head, for x [N, 16]: two groups of keys, each with two heads of queries."""
    q, k, v = (x @ w[f"{name}.linear.weight"].T + w[f"{name}.linear.bias"] for name in "qkv")
    rows = []
    for n in range(len(x)):
        heads = []
        for head in range(4):
            group = slice(4 * (head // 2), 4 * (head // 2) + 4)
            near = slice(max(0, n - 5), n + 1)
            scores = k[near, group] @ q[n, 4 * head : 4 * head + 4] / math.sqrt(4)
            powers, extra = scores.exp(), w["sink"][head // 2, head % 2].exp()
            heads.append((powers / (powers.sum() + extra)) @ v[near, group])
        rows.append(torch.cat(heads))
    return torch.stack(rows) @ w["y.linear.weight"].T + w["y.linear.bias"]


def test_the_layer_of_gpt_oss_computes_its_equations() -> None:
    model = modgraph.load(HOME / "gpt_oss_attention.mod").build(seed=2).double()
    x = torch.randn(3, max(LENGTHS), 16, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    y = model.compute({"x": x, "time_length": torch.tensor(LENGTHS)}).outputs["y"]
    weights = {name: each.detach().clone().requires_grad_() for name, each in model.named_parameters()}
    expected = [gpt_oss(weights, row[:length]) for row, length in zip(x, LENGTHS, strict=True)]
    for row, each, length in zip(y, expected, LENGTHS, strict=True):
        torch.testing.assert_close(row[:length], each)
    torch.stack([row[:length].sin().sum() for row, length in zip(y, LENGTHS, strict=True)]).sum().backward()  # type: ignore[no-untyped-call]
    torch.stack([each.sin().sum() for each in expected]).sum().backward()  # type: ignore[no-untyped-call]
    for name, each in model.named_parameters():
        torch.testing.assert_close(each.grad, weights[name].grad, msg=lambda text, name=name: f"{name}: {text}")
