"""What a model keeps of the tokens that it has seen, to generate the next ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from modgraph_runtime.files import format_bytes

from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph
from modgraph.passes import STEPWISE, apply_passes
from modgraph.passes.cache_names import is_cache, list_most_kept
from modgraph.types import TensorType

BYTES = {"float": 4, "token": 8, "class": 8}  # of a number


@dataclass(frozen=True)
class Caches:
    """Bytes that an example keeps in float32: for each token, and whatever the number of tokens.

    `windows` are bytes for each token up to a number of tokens, by that number.
    """

    per_token: int
    fixed: int
    windows: Mapping[int, int] = field(default_factory=dict)

    def __str__(self) -> str:
        """Format it: `260 bytes of each token, 132 bytes of each of 127 tokens at most (16.8 KB), and 4 bytes of an
        example`."""
        parts = [f"{format_bytes(self.per_token)} of each token"] if self.per_token else []
        parts += [
            f"{format_bytes(each)} of each of {most:,} tokens at most ({format_bytes(most * each)})"
            for most, each in sorted(self.windows.items())
        ]
        parts += [f"{format_bytes(self.fixed)} of an example"] if self.fixed else []
        joined = ", and ".join([*([", ".join(parts[:-1])] if parts[:-1] else []), *parts[-1:]])
        return f"to generate, it keeps {joined}{'' if self.per_token else ', whatever its length'}"

    def as_json(self) -> dict[str, Any]:
        windows = [{"tokens": most, "per_token": each} for most, each in sorted(self.windows.items())]
        return {"per_token": self.per_token, "fixed": self.fixed, **({"windows": windows} if windows else {})}


def count_caches(graph: Graph) -> Caches | None:
    """Count the bytes of a graph's caches; None if it has none, or no incremental form."""
    if not any(type_.padded for type_ in graph.input_types.values()):
        return None
    try:
        stepwise = apply_passes(graph, STEPWISE)
    except ModgraphError:
        return None
    most, counted = list_most_kept(stepwise), Counter[int | None]()
    for name, type_ in stepwise.input_types.items():
        if is_cache(name):
            counted[most.get(name, None if type_.padded else 0)] += _count(type_)
    fixed, per_token = counted.pop(0, 0), counted.pop(None, 0)
    return (
        Caches(per_token, fixed, {each: size for each, size in counted.items() if each})
        if most or fixed or per_token
        else None
    )


def _count(type_: TensorType) -> int:
    """The bytes of a value, of one token along an axis of any length."""
    return BYTES[type_.dtype] * prod(axis.size or 1 for axis in type_.shape)
