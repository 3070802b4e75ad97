"""Weights of eight bits, in standard operators.

In a product x·W each output, a column of W, has its own scale, and so has each token, a row of x, at every run. So an
example's result does not depend on its batch. The bytes are unsigned: signed ones overflow on processors that add pairs
of products in sixteen bits (AVX2 without VNNI). Measured in ONNX Runtime, scales of tokens cost nothing against one for
the tensor, fixed ranges of x are no faster and cut larger values off, and dequantised weights take longer than float.

Weights of modules that are gathered by index are dequantised after the gathering. What routers decide by stays float,
and so do convolutions and recurrent layers, which ONNX Runtime runs no faster in eight bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir
from numpy.typing import NDArray

from modgraph.backends.errors import NothingToRound
from modgraph.backends.onnx.decisions import choices_of
from modgraph.backends.onnx.examples import Arrays
from modgraph.backends.onnx.int8_products import Rounder, Use, find_uses, list_float_arrays
from modgraph.backends.onnx.int8_scales import Seen, observe
from modgraph.backends.onnx.int8_weights import Weights
from modgraph.backends.onnx.optimize import trim
from modgraph.backends.onnx.trace import Traced, strip_metadata
from modgraph.backends.torch import Model
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph


@dataclass(frozen=True)
class Rounding:
    """What was rounded, and on which data its scales were fitted.

    `products` and `gathered` are the names of weights by how they are computed with. `exact` are those that stay float
    by the reason, also those of which another use stays float. `fitted` are those with fitted scales. `tokens` has the
    number of tokens of each module on `examples`.
    """

    products: tuple[str, ...]
    gathered: tuple[str, ...]
    exact: Mapping[str, tuple[str, ...]]
    fitted: tuple[str, ...]
    examples: int
    tokens: Mapping[str, tuple[int, ...]]

    @property
    def unreached(self) -> dict[str, list[int]]:
        """The modules of each pool that no calibration data reached."""
        found = {pool: [at for at, count in enumerate(counts) if not count] for pool, counts in self.tokens.items()}
        return {pool: modules for pool, modules in found.items() if modules}

    def as_json(self) -> dict[str, Any]:
        """The entry of the manifest."""
        rounded = (*self.products, *self.gathered)
        return {
            "weights": "unsigned bytes around 128, with a scale for each output of a module",
            "products": {
                "weights": len(self.products),
                "operator": "MatMulInteger",
                "inputs": "a scale for each token",
            },
            "gathered": {"weights": len(self.gathered), "operator": "Gather", "inputs": "float"},
            "float": {reason: [*names] for reason, names in self.exact.items() if names},
            "scales": {"fitted": len(self.fitted), "from the largest weight": len(rounded) - len(self.fitted)},
            "calibration": {
                "examples": self.examples,
                "tokens": {pool: [*counts] for pool, counts in self.tokens.items()},
                "unreached": self.unreached,
            },
        }


def quantise(traced: Traced, model: Model, calibration: Arrays) -> tuple[Traced, Rounding]:
    """Round the weights of a model. Raises `ModgraphError` if it has none that can be rounded."""
    weights, graph = Weights.from_model(model), onnx_ir.from_proto(traced.proto)
    uses = [*find_uses(graph, weights)]
    if not uses:
        raise ModgraphError([NothingToRound(model=model.graph.name)])
    choices = {traced.tensors[name]: each.pool.name for name, each in choices_of(model.graph).items()}
    outer = {
        str(value.name) for value in (*graph.graph.inputs, *(each for node in graph.graph for each in node.outputs))
    }
    seen, counts = observe(graph, {str(each.operand.name) for each in uses} & outer, choices, calibration)
    received = [(pool, counts[tensor]) for tensor, pool in choices.items()]
    tokens = _count_tokens(model.graph, weights, uses, seen, received)
    rounder = Rounder(graph, seen)
    for each in uses:
        rounder.round(each)
    trim(graph)
    proto = onnx_ir.to_proto(graph)
    proto.producer_name, proto.producer_version = traced.proto.producer_name, traced.proto.producer_version
    examples = len(next(iter(calibration.values())))
    left = {name for array in list_float_arrays(graph) for name in weights.find(array)}
    rounding = _describe(weights, uses, left, rounder.fitted, examples, tokens)
    return replace(traced, proto=strip_metadata(proto)), rounding


def _describe(
    weights: Weights,
    uses: list[Use],
    left: set[str],
    fitted: set[str],
    examples: int,
    tokens: Mapping[str, tuple[int, ...]],
) -> Rounding:
    gathered = tuple(dict.fromkeys(name for each in uses for name in each.names if each.is_gathering))
    multiplied = tuple(dict.fromkeys(name for each in uses for name in each.names if not each.is_gathering))
    others = tuple(name for name in weights.names if name not in {*multiplied, *gathered, *weights.decisive})
    twice = tuple(name for name in weights.names if name in left and name in {*multiplied, *gathered})
    exact = {"routers": tuple(sorted(weights.decisive)), "others": others, "in other uses": twice}
    return Rounding(multiplied, gathered, exact, tuple(sorted(fitted)), examples, tokens)


def _count_tokens(
    graph: Graph, weights: Weights, uses: list[Use], seen: Mapping[str, Seen], received: list[tuple[str, NDArray[Any]]]
) -> dict[str, tuple[int, ...]]:
    """The number of tokens that each module received: by the choices of routers, else by what its weights multiply.

    Pools in scans without such a choice are left out.
    """
    found = dict[str, NDArray[Any]]()
    for pool, counts in received:
        found[pool] = found.get(pool, 0) + counts
    sizes = {name: pool.size for name, pool in graph.pools().items() if name not in found}
    for use in (each for each in uses if str(each.operand.name) in seen):
        values = seen[str(use.operand.name)]
        for at, name in enumerate(use.names):
            pool, number = weights.modules.get(name, ("", 0))
            if pool in sizes:
                counts = found.setdefault(pool, np.zeros(sizes[pool], int))
                counts[number] = max(counts[number], values.rows[at] if values.rows else values.count)
    return {name: tuple(map(int, counts)) for name, counts in found.items()}
