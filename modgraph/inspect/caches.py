"""What a model keeps of the tokens that it has seen, to generate the next ones."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from modgraph_runtime.files import format_bytes

from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph
from modgraph.passes import STEPWISE, apply_passes
from modgraph.passes.caching import is_cache
from modgraph.types import TensorType

BYTES = {"float": 4, "token": 8, "class": 8}  # of a number


@dataclass(frozen=True)
class Caches:
    """Bytes that an example keeps in float32: for each token, and whatever the number of tokens."""

    per_token: int
    fixed: int

    def __str__(self) -> str:
        if not self.per_token:
            return f"to generate, it keeps {format_bytes(self.fixed)} of an example, whatever its length"
        also = f", and {format_bytes(self.fixed)} of an example" if self.fixed else ""
        return f"to generate, it keeps {format_bytes(self.per_token)} of each token{also}"

    def as_json(self) -> dict[str, int]:
        return {"per_token": self.per_token, "fixed": self.fixed}


def count_caches(graph: Graph) -> Caches | None:
    """Count the bytes of a graph's caches; None if it has none, or no incremental form."""
    if not any(type_.padded for type_ in graph.input_types.values()):
        return None
    try:
        types = apply_passes(graph, STEPWISE).input_types
    except ModgraphError:
        return None
    kept = [type_ for name, type_ in types.items() if is_cache(name)]
    growing = [any(axis.is_padded for axis in type_.shape) for type_ in kept]
    per_token = sum(_count(type_) for type_, grows in zip(kept, growing, strict=True) if grows)
    fixed = sum(_count(type_) for type_, grows in zip(kept, growing, strict=True) if not grows)
    return Caches(per_token, fixed) if kept else None


def _count(type_: TensorType) -> int:
    """The bytes of a value, of one token along an axis of any length."""
    return BYTES[type_.dtype] * prod(axis.size or 1 for axis in type_.shape)
