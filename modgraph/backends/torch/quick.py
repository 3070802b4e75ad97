"""The quickest functions of modules: without hooks, and without looking up attributes of modules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn import Arithmetic
from modgraph.nn.normalise import normalise_by_norm


def find_quick_function(compute: Any) -> Callable[..., Any]:
    """Find a function of the same values as a module, with the weights that it has when the function is called."""
    if isinstance(compute, nn.RMSNorm):
        return partial(normalise_by_norm, compute)
    if isinstance(compute, nn.Linear) and type(compute).forward is nn.Linear.forward:
        return partial(_apply_linear, compute._parameters)
    if isinstance(compute, Arithmetic) and compute.is_operator:
        return compute.OPERATORS[compute.symbol]
    forward: Callable[..., Any] = getattr(compute, "forward", compute)
    return forward


def _apply_linear(weights: dict[str, Any], x: Tensor) -> Tensor:
    return F.linear(x, weights["weight"], weights["bias"])
