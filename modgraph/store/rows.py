"""Tensors of very many modules in one file. safetensors reads at most 100 MB of names, which those of a million exceed.

Such a file has one tensor for all modules, named `p.*.linear.weight`: readers and writers see a tensor for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from modgraph.ir import EACH, Graph

MOST_NAMES = 2**17  # of the tensors of a file, before rows are stacked


def stack_rows(tensors: Mapping[str, Any], stack: Callable[[list[Any]], Any]) -> dict[str, Any]:
    """Stack tensors whose names differ in a number from 0 on, if there are very many; `stack` is that of torch."""
    if len(tensors) <= MOST_NAMES:
        return dict(tensors)
    found, rows = dict[str, Any](), dict[str, dict[str, Any]]()
    for name, tensor in tensors.items():
        above, number, below = _split(name)
        if number:
            rows.setdefault(f"{above}{EACH}{below}", {})[number] = tensor
        else:
            found[name] = tensor
    for name, each in rows.items():
        first = next(iter(each.values()))
        numbers = [str(at) for at in range(len(each))]
        if each.keys() == {*numbers} and all((x.shape, x.dtype) == (first.shape, first.dtype) for x in each.values()):
            found[name] = stack([each[number] for number in numbers])
        else:
            found |= {name.replace(EACH, number): tensor for number, tensor in each.items()}
    return found


def _split(name: str) -> tuple[str, str, str]:
    """Split a name around its last part that is a number; the number is empty if there is none."""
    parts = name.split(".")
    at = max((at for at, part in enumerate(parts) if part.isdecimal()), default=-1)
    if at < 0:
        return name, "", ""
    return "".join(f"{each}." for each in parts[:at]), parts[at], "".join(f".{each}" for each in parts[at + 1 :])


def split_rows(tensors: Mapping[str, Any], graph: Graph) -> dict[str, Any]:
    """Split tensors that `stack_rows` has stacked, of torch or numpy, into those of the modules. Those of the large
    pools of a graph stay whole."""
    found: dict[str, Any] = {}
    large = [f".{pool.name}.{EACH}." for pool in graph.pools().values() if pool.is_large]
    for name, tensor in tensors.items():
        above, star, below = name.partition(EACH)
        star = "" if any(each in name for each in large) else star
        rows = {f"{above}{j}{below}": tensor[j, ...] for j in range(len(tensor))} if star else {name: tensor}
        found.update(rows)
    return found
