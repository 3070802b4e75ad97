"""Finds the weights that `--int8` rounds: the matrices of linear maps, but none by which a router decides.

A traced graph has weights, their transposes, and stacks of the weights of a pool's modules. The exporter drops the
names of constants that it computes from weights, so this compares contents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.backends.onnx.permute import find_axes_of_inner_modules
from modgraph.backends.torch import Model
from modgraph.ir import Graph, OpNode, PoolNode, RouteNode, RouterNode, list_node_weights

Print = tuple[tuple[int, ...], int]
Module = tuple[str, int]  # a pool and the number of its module


@dataclass(frozen=True)
class Weights:
    """The matrices to round, by contents: the names of their weights, those of each module of a stack in order.

    `names` are the names of all matrices and stacks of a model, `decisive` those by which routers decide. `modules` has
    the module of a weight.
    """

    known: Mapping[Print, tuple[str, ...]]
    names: tuple[str, ...]
    decisive: frozenset[str]
    modules: Mapping[str, Module]

    @classmethod
    def from_model(cls, model: Model) -> Weights:
        graph, values = model.graph, {name: each.numpy() for name, each in model.state_dict().items()}
        matrices = {name: each for name, each in values.items() if each.ndim > 1}
        decisive = frozenset((*find_decisive(graph), *find_axes_of_inner_modules(graph))) & {*matrices}
        rounded = {name: each for name, each in matrices.items() if name not in decisive}
        modules = {name: module for name in rounded if (module := _find_module(name, graph)) is not None}
        known = dict[Print, tuple[str, ...]]()
        for names, array in (*_list_matrices(rounded), *_list_stacks(rounded, modules, graph)):
            known.setdefault(fingerprint(array), names)
        return cls(known, tuple(matrices), decisive, modules)

    def find(self, array: NDArray[Any]) -> tuple[str, ...]:
        """The weights that a constant consists of; none if it is not one to round."""
        return self.known.get(fingerprint(array), ())


def fingerprint(array: NDArray[Any]) -> Print:
    return array.shape, hash(array.tobytes())


def find_decisive(graph: Graph) -> Iterator[str]:
    """The weights of routers, and of ops that gates and choices depend on but the tokens of their route do not."""
    for part in graph.parts():
        found = {node.name for node in part.graph.nodes_of(RouterNode)}
        for route in part.graph.nodes_of(RouteNode):
            inputs = part.graph.inputs(route.name)
            others = [each.node for slot, each in inputs.items() if slot != "tokens"]
            found |= part.graph.ancestors(others) - part.graph.ancestors([inputs["tokens"].node])
            yield from (each.name for each in list_node_weights(part.graph, route))
        for node in map(part.graph.__getitem__, found):
            if isinstance(node, OpNode):
                yield from (each.name for each in list_node_weights(part.graph, node))
        for pool in part.graph.nodes_of(PoolNode):
            yield from _find_decisive_inside(pool)


def _find_decisive_inside(pool: PoolNode) -> Iterator[str]:
    for at, region in enumerate(pool.regions):
        keys = ("shared", "*", *range(pool.size)) if pool.is_homogeneous else (at,)
        for name in find_decisive(region.graph):
            yield from (f"{pool.name}.{key}.{name}" for key in keys)


def _find_module(name: str, graph: Graph) -> Module | None:
    """The module of an outer pool that a weight belongs to."""
    for pool in graph.pools().values():
        number, _, _ = name.removeprefix(f"{pool.name}.").partition(".")
        if name.startswith(f"{pool.name}.") and number.isdecimal():
            return pool.name, int(number)
    return None


def _list_matrices(weights: Mapping[str, NDArray[Any]]) -> Iterable[tuple[tuple[str, ...], NDArray[Any]]]:
    for name, weight in weights.items():
        if weight.ndim == 2:
            yield (name,), weight
            yield (name,), weight.T
        elif weight.ndim == 3:  # the modules of a large pool
            yield (name,), weight


def _list_stacks(
    weights: Mapping[str, NDArray[Any]], modules: Mapping[str, Module], graph: Graph
) -> Iterable[tuple[tuple[str, ...], NDArray[Any]]]:
    """The weights of all modules of a pool, stacked: [M, R, D], and flattened to one matrix [M·R, D]."""
    for pool in graph.pools().values():
        own = [name for name, (place, number) in modules.items() if place == pool.name and number == 0]
        for first in own if pool.is_homogeneous else ():
            path = first.removeprefix(f"{pool.name}.0.")
            names = tuple(f"{pool.name}.{number}.{path}" for number in range(pool.size))
            if weights[first].ndim == 2 and all(name in weights for name in names):
                stack = np.stack([weights[name] for name in names])
                flat = stack.reshape(-1, stack.shape[-1])
                yield from ((names, stack), (names, flat), (names, flat.T))
