"""Models of one route by a router that text defines, and what they give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import modgraph
from modgraph.backends.torch import Model
from modgraph.ir import RouteNode

DIM, WIDTH = 3, 2
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Given:
    """What a route gave: its value and its records, by name."""

    value: Tensor
    records: dict[str, Tensor]

    def numpy(self) -> tuple[Array, dict[str, Array]]:
        return self.value.detach().numpy(), {name: each.detach().numpy() for name, each in self.records.items()}


def randomised(module: nn.Module, seed: int) -> nn.Module:
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        parameter.data.normal_(0, 0.7, generator=generator)
    return module


def model_by(router: str, size: int, seed: int = 0, lowering: str | None = None, width: int = WIDTH) -> Model:
    """Tokens [B, time, DIM] to linear modules by a router of the vocabulary, weights at random."""
    text = f"""model m() {{ input x: float[time, {DIM}] pool p[{size}] = linear({width})
      router r = {router} y = x -> p by r output y }}"""
    model = modgraph.loads(text).build(lowering=lowering).double()
    randomised(model, seed)
    return model


def given_by(model: Model, x: Tensor, length: Tensor | None = None, **others: Tensor) -> Given:
    """The output `y` and what its route recorded."""
    lengths = {} if length is None else {"time_length": length}
    found = model.compute({"x": x, **others, **lengths}, routing=True)
    return Given(found.outputs["y"], {name.removeprefix("p."): each for name, each in found.routing.items()})


def messages_of(model: Model, x: Tensor, pool: str = "p") -> Tensor:
    """What every module makes of every token: [..., modules, WIDTH]."""
    found: Tensor = model.get_submodule(pool).all(x)  # type: ignore[operator]
    return found


def weights_of(model: Model) -> dict[str, Array]:
    """The router's own, by name."""
    named = model.named_parameters()
    return {name.removeprefix("r."): each.detach().numpy() for name, each in named if name.startswith("r.")}


def lowerings_of(program: modgraph.Program) -> tuple[str, ...]:
    """The forms of the only route that is computed as one."""
    (part, *_) = program.ir.parts()
    (route,) = part.graph.nodes_of(RouteNode)
    return tuple(each.name for each in part.graph.declaration_of(route).lowerings(part.facts_of(route)))
