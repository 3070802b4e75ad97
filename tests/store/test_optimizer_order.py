"""The order in which an optimizer's state is told, by which processes bring together what each has of it."""

from __future__ import annotations

import torch
from torch import nn

from modgraph.store.checkpoint import OptimizerState, optimizer_state, restore_optimizer


def test_it_does_not_depend_on_the_order_in_which_a_file_was_read() -> None:
    """That of safetensors differs between processes."""
    names = ["weight", "bias"]

    def after_a_step() -> tuple[torch.optim.Adam, OptimizerState]:
        layer = nn.Linear(2, 3)
        optimizer = torch.optim.Adam(layer.parameters())
        layer(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        return optimizer, optimizer_state(optimizer, names)

    optimizer, kept = after_a_step()
    reversed_fields = {name: dict(reversed(fields.items())) for name, fields in reversed(kept.items())}
    restore_optimizer(optimizer, names, reversed_fields)
    again = optimizer_state(optimizer, names)
    assert [(name, *fields) for name, fields in again.items()] == [(name, *fields) for name, fields in kept.items()]
    for name, fields in kept.items():
        assert all(torch.equal(again[name][key], value) for key, value in fields.items())
