"""Fresh weights: each a function of the seed and its own name, so that no weight depends on another's existence."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor, nn

from modgraph.ir import GraphWeight


def generator_for(*parts: object) -> torch.Generator:
    """A random generator derived from what it is for: a seed, a step, a name."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") % 2**63)


@torch.no_grad()
def initialise(module: nn.Module, weights: list[GraphWeight], seed: int) -> None:
    """Set every weight of a module to its start."""
    tensors = module.state_dict(keep_vars=True)
    for weight in weights:
        _fill(tensors[weight.name], weight, generator_for(seed, weight.name))


def _fill(tensor: Tensor, weight: GraphWeight, generator: torch.Generator) -> None:
    match weight.initial.kind:
        case "zeros":
            tensor.zero_()
        case "ones":
            tensor.fill_(1)
        case "constant":
            tensor.fill_(weight.scale)
        case "uniform":
            tensor.uniform_(-weight.scale, weight.scale, generator=generator)
        case "normal":
            tensor.normal_(0, weight.scale, generator=generator)
        case kind:
            raise AssertionError(f"no such start: {kind}")
