"""Fresh weights. Each is a function of the seed and its own name, so other weights do not affect it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch
from modgraph_runtime.files import SMALL, format_bytes, free_memory
from torch import Tensor, nn

from modgraph.backends.errors import WeightsBeyondMemory
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, GraphWeight

BLOCK = 4096  # modules of a large pool whose weights are sampled together
RANDOM = ("uniform", "normal", "orthogonal")


def make_generator(*parts: object) -> torch.Generator:
    """Make a random generator from its purpose: a seed, a step, a name."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") % 2**63)


@torch.no_grad()
def initialise(module: nn.Module, weights: list[GraphWeight], seed: int) -> None:
    """Initialise every weight of a module."""
    tensors = module.state_dict(keep_vars=True)
    for weight in weights:
        tensor = tensors[weight.name]
        if not weight.rows:
            initialise_one(tensor, weight, seed, weight.name)
            continue
        for start in range(0, len(tensor), BLOCK):  # whole blocks, so that modules that join change no other
            block = tensor.new_empty(BLOCK, *tensor.shape[1:])
            initialise_one(block, weight, seed, f"{weight.name}[{start}]")
            rows = tensor[start : start + BLOCK]
            rows.copy_(block[: len(rows)])


def initialise_one(tensor: Tensor, weight: GraphWeight, *purpose: object) -> None:
    """Initialise one weight, or a block of its rows, by noise for a purpose."""
    name, numbers = find_initialiser(weight)
    random = {"generator": make_generator(*purpose)} if name in RANDOM else {}
    for part in tensor.flatten(0, -3) if has_matrices(weight) else (tensor,):
        getattr(nn.init, f"{name}_")(part, *numbers, **random)


def find_initialiser(weight: GraphWeight) -> tuple[str, tuple[float, ...]]:
    """Return the name of torch's initialiser for a weight, and its arguments: bounds, or mean and deviation, or the
    constant or gain."""
    name, scale = weight.initial.kind.removeprefix("xavier_"), weight.scale
    known = {"uniform": (-scale, scale), "normal": (0, scale), "constant": (scale,), "orthogonal": (scale,)}
    return name, known.get(name, ())


def has_matrices(weight: GraphWeight) -> bool:
    """Whether each of several matrices of a weight is initialised by itself."""
    return weight.is_stacked and weight.initial.kind == "orthogonal" and len(weight.axes) > 2


def refuse_large_weights(graph: Graph, weights: Sequence[GraphWeight]) -> None:
    """Raise `ModgraphError` if some weights of a graph need more memory than is free."""
    needed = 4 * sum(weight.count for weight in weights)
    free = free_memory() if needed > SMALL else None
    if free is None or needed <= free:
        return
    largest = max(weights, key=lambda weight: weight.count)
    owners = {getattr(node, "owner", node.name): node.span for part in graph.parts() for node in part.graph}
    path = largest.owner.split(".")
    above = (".".join(path[:end]) for end in range(len(path), 0, -1))  # the place of the op's or pool's declaration
    fault = WeightsBeyondMemory(
        span=next((owners[each] for each in above if owners.get(each) is not None), None),
        needed=format_bytes(needed),
        free=format_bytes(free),
        name=largest.name,
        shape=str([*largest.shape]),
    )
    raise ModgraphError([fault])
