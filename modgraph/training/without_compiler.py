"""Torch's optimizers, called without its compiler: importing that takes as long as importing torch."""

from __future__ import annotations

import inspect

import torch
from torch.optim import Optimizer

METHODS = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")  # which torch keeps from being compiled


def without_compiler(kind: type[Optimizer]) -> type[Optimizer]:
    """An optimizer's class with the methods that torch wrapped for its compiler as they were before; other classes
    than torch's own are left as they are."""
    if not kind.__module__.startswith("torch.optim."):
        return kind
    methods = {name: inspect.unwrap(getattr(kind, name)) for name in METHODS}
    return type(kind.__name__, (kind,), {**methods, "step": torch.no_grad()(inspect.unwrap(kind.step))})
