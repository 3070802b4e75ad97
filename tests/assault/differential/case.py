"""A program with weights and examples, and what it comes to in several ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import modgraph
from modgraph.backends.torch import Computed, Model
from modgraph.ir import Graph, OpNode, Result, find_moved_states, flat_to_json
from modgraph.types import TensorType
from tests.assault.coverage import graphs_in
from tests.assault.examples_at_random import Batch, batch_for, mask_padding, unlike_start, with_rubbish
from tests.reference import Interpreted, interpret

CLOSE = 1e-8  # relative to the largest number of a value
EXAMPLES = 3
Values = dict[str, Tensor]


class Unlike(AssertionError):
    """Two ways to compute a program give different results: which ways, and what."""


@dataclass(frozen=True)
class Case:
    """A program with weights and examples, in float64."""

    program: modgraph.Program
    seed: str

    @property
    def graph(self) -> Graph:
        return self.program.ir

    @cached_property
    def model(self) -> Model:
        model = self.program.build(seed=1)
        unlike_start(model, self.seed)
        return model.double().eval()

    @cached_property
    def weights(self) -> dict[str, NDArray[Any]]:
        return {name: value.detach().numpy() for name, value in self.model.state_dict().items()}

    @cached_property
    def batch(self) -> Batch:
        batch = batch_for(self.graph, EXAMPLES, self.seed)
        return with_rubbish(self.graph, batch, self.seed)

    @cached_property
    def types(self) -> dict[str, TensorType]:
        """The types of outputs and records by name, and of states after a step."""
        named = self.graph.outputs | self.graph.records()
        types = {name: self.graph.type_of(result) for name, result in named.items()}
        return types | {f"next {name}": _of_batch(self.graph, result) for name, result in self.moved.items()}

    @cached_property
    def moved(self) -> dict[str, Result]:
        return find_moved_states(self.graph)

    @contextmanager
    def training(self) -> Iterator[None]:
        """The model in training, which may move what it keeps; afterwards all is as before."""
        kept = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.model.train()
        try:
            yield
        finally:
            self.model.eval().load_state_dict(kept)

    def without_padding(self, values: Mapping[str, Tensor]) -> Values:
        """Values with zeros in their padding."""
        none = TensorType("float", per="batch")
        return {
            name: mask_padding(self.graph, self.types.get(name, none), self.batch, value)
            for name, value in values.items()
        }


def _of_batch(graph: Graph, result: Result) -> TensorType:
    return TensorType("float", graph.type_of(result).shape, per="batch")


@contextmanager
def in_64_bits() -> Iterator[None]:
    """Numbers that are made from nothing of a type have 64 bits: given arrays of a model that reads ids alone."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def by_torch(case: Case, model: Model) -> Values:
    """Outputs, losses and records, in training also what states become, with zeros in padding."""
    moved = case.moved if model.training else {}
    with torch.no_grad(), in_64_bits():
        found: Computed = model.compute(case.batch, routing=True, moves=False)
        states = model.results(case.batch, tuple(moved.values()))
    values = found.outputs | found.losses | found.routing
    return case.without_padding(values | {f"next {name}": value for name, value in zip(moved, states, strict=True)})


def by_reference(case: Case, training: bool = False, nudge: float = 0.0) -> Values:
    """The same by the interpreter, which may be given slightly other weights and examples."""
    generator = np.random.default_rng(7)

    def moved(value: Tensor) -> NDArray[Any]:
        array: NDArray[Any] = value.detach().numpy()
        return (
            array * (1 + nudge * generator.normal(size=array.shape)) if nudge and array.dtype == np.float64 else array
        )

    weights = {name: moved(value) for name, value in case.model.state_dict().items()}
    batch = {name: moved(value) for name, value in case.batch.items()}
    found: Interpreted = interpret(flat_to_json(case.graph), weights, batch, training=training)
    values = {**found.outputs, **found.losses, **found.routing}
    values |= {f"next {name}": value for name, value in found.states.items() if name in case.moved}
    return case.without_padding(
        {name: torch.as_tensor(np.asarray(value, dtype=float)) for name, value in values.items()}
    )


def hold(ways: str, expected: Values, found: Values, close: float = CLOSE) -> None:
    """Raises `Unlike` where two ways give different values."""
    if expected.keys() != found.keys():
        raise Unlike(ways, f"only one of them has {sorted(expected.keys() ^ found.keys())}")
    for name, value in expected.items():
        if value.shape != found[name].shape:
            raise Unlike(ways, f"{name}: {list(value.shape)} and {list(found[name].shape)}")
        apart = apartness(value, found[name])
        if not apart <= close:
            raise Unlike(ways, f"{name}: {apart:.1e} apart")


def apartness(one: Tensor, other: Tensor) -> float:
    """How far two values are apart, relative to the largest number in them, or to one."""
    if one.numel() == 0:
        return 0.0
    one, other = one.detach(), other.detach()
    return float((one - other).abs().max() / max(1.0, float(one.abs().max())))


def is_random(node: OpNode) -> bool:
    """Whether it computes something by chance in training, or of other examples."""
    op = node.op
    return op.draws or op.zero_outside_training or op.name in ("dropout", "within_capacity")


def op_nodes(graph: Graph) -> Iterator[OpNode]:
    """Every op, in scans and in modules of pools too."""
    for each in graphs_in(graph):
        yield from each.nodes_of(OpNode)
