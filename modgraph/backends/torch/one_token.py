"""Runs a plan for one token on a processor: numpy computes what is small, on arrays in the memory of tensors.

An operation of torch takes about 10 µs to begin, whatever its size; one of numpy a tenth of that. A token has hundreds
of operations and few numbers: its time is that of beginning them, and of reading weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from modgraph.backends.torch.plan import Once
from modgraph.backends.torch.regions import CompiledPool, Expert
from modgraph.backends.torch.room import append
from modgraph.backends.torch.run import CompiledRoute, Plan, find_call
from modgraph.nn import TokenChoice
from modgraph.nn.choice_routes import ChoiceRoute
from modgraph.nn.dot_product import DotProductAttention
from modgraph.nn.on_arrays import Array, find_array_function
from modgraph.nn.steps import Append


class Instruction(NamedTuple):
    """A call on numbered values, and the places of its results that are kept if it gives a tuple."""

    call: Callable[..., Any]
    operands: tuple[int, ...]
    places: tuple[int, ...] = (0,)


@dataclass(frozen=True, eq=False)
class TokenPlan:
    """Instructions that append their results to the values; the first values are the arguments.

    It holds the weights that the modules have when it is made.
    """

    instructions: tuple[Instruction, ...]
    results: tuple[int, ...]

    def run(self, arguments: Sequence[Any]) -> list[Any]:
        with np.errstate(all="ignore"):  # as torch: what overflows is infinite
            return self.compute(arguments)

    def compute(self, arguments: Sequence[Any]) -> list[Any]:
        """`run`, where numpy's warnings are off."""
        values = [*arguments]
        for call, operands, places in self.instructions:
            found = call(*[values[at] for at in operands])
            if isinstance(found, tuple):
                values += [found[at] for at in places]
            else:
                values.append(found)
        return [values[at] for at in self.results]


def can_run_arrays(model: nn.Module) -> bool:
    """Whether all weights are numbers that numpy has as torch has them, in its memory."""
    known = (torch.float32, torch.int64, torch.bool)
    return all(each.device.type == "cpu" and each.dtype in known for each in model.state_dict().values())


def plan_one_token(plan: Plan, of_arrays: bool = False) -> TokenPlan:
    """The plan for one token of one example, whose lengths are absent. Arguments and results are tensors, or arrays."""
    writer = _Writer(len(plan.arguments), of_arrays)
    for step in plan.steps:
        writer.write(step.compute, step.operands, step.results)
    results = tuple(writer.find(at, of_arrays) for at in plan.results)
    return TokenPlan(tuple(writer.instructions), results)


@dataclass(eq=False)
class _Writer:
    """Writes instructions. `known` has the number of a value of the plan as an array, or as a tensor."""

    arguments: int
    of_arrays: bool
    instructions: list[Instruction] = field(default_factory=list)
    known: dict[tuple[int, bool], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.size, self.given = self.arguments, self.arguments
        self.known = {(at, self.of_arrays): at for at in range(self.arguments)}

    def write(self, compute: Any, operands: tuple[int, ...], places: tuple[int, ...]) -> None:
        """Write an instruction for a step of the plan."""
        call, on_arrays = find_function(compute)
        taken = operands[1:] if isinstance(call, _Once) else operands
        self.instructions.append(Instruction(call, tuple(self.find(at, on_arrays) for at in taken), places))
        for at in range(len(places)):
            self.known[self.given + at, on_arrays] = self.size + at
        self.given, self.size = self.given + len(places), self.size + len(places)

    def find(self, value: int, as_array: bool) -> int:
        """The number of a value as an array or a tensor; an instruction converts it, once."""
        if (value, as_array) not in self.known:
            convert = to_array if as_array else to_tensor
            self.instructions.append(Instruction(convert, (self.known[value, not as_array],)))
            self.known[value, as_array], self.size = self.size, self.size + 1
        return self.known[value, as_array]


def to_tensor(x: Any) -> Tensor:
    """A tensor in the memory of an array; numpy gives a number where no axis is left."""
    return torch.from_numpy(np.asarray(x))


def to_array(x: Tensor) -> Array:
    """The numbers of a tensor, in its memory if they are float32, as those of every array are."""
    if x.requires_grad:  # a weight
        x = x.detach()
    found: Array = (x if x.dtype is torch.float32 else x.float()).numpy()
    return found


class Function(NamedTuple):
    """The function of a step, and whether it takes and gives arrays or tensors."""

    call: Callable[..., Any]
    on_arrays: bool


def find_function(compute: Any) -> Function:
    """Find the function of a step: on arrays where it has one."""
    if isinstance(compute, Once):
        inner = find_function(compute.compute)
        return Function(_Once(inner.call), True) if inner.on_arrays else Function(compute, False)
    if isinstance(compute, CompiledRoute) and _is_plain(compute):
        return Function(RouteOfToken(compute.pool, compute.router), True)
    if isinstance(compute, DotProductAttention) and compute.sees_all:
        return Function(compute.attend_from_last, False)
    if isinstance(compute, Append):
        return Function(partial(append, compute.axis), False)
    found = find_array_function(compute)
    return Function(find_call(compute), False) if found is None else Function(found, True)


def _is_plain(route: CompiledRoute) -> bool:
    """Whether a route sums the messages of the modules that a token chose."""
    is_choice = isinstance(route.lowering, ChoiceRoute) and type(route.router) is TokenChoice
    return is_choice and type(route.pool) is CompiledPool and not (route.single or route.takes_one)


@dataclass(frozen=True, eq=False)
class _Once:
    """Gives a batch-invariant value twice: for the one example, and for all."""

    compute: Callable[..., Any]

    def __call__(self, *operands: Array) -> tuple[Any, ...]:
        found = self.compute(*operands)
        each = found if isinstance(found, tuple) else (found,)
        return (*each, *each)


@dataclass(frozen=True, eq=False)
class RouteOfToken:
    """Sums the messages of the modules that one token chose, each planned when it is chosen first."""

    pool: CompiledPool
    router: TokenChoice
    plans: dict[int, TokenPlan] = field(default_factory=dict)

    def __call__(self, token: Array, weights: Array, scores: Array, choice: Array) -> tuple[Array, ...]:
        """A token [1, ..., message], and weights, scores and choice [1, ..., M], give [1, ..., result] and records."""
        is_edge = choice != 0
        gates = weights if self.router.straight else weights * is_edge
        each, modules = gates.ravel(), is_edge.ravel().nonzero()[0].tolist()
        parts = [self.send(token, module) * each[module] for module in modules]
        found = sum(parts[1:], parts[0]) if parts else 0 * self.send(token, 0)
        return found, gates, scores, is_edge.astype(choice.dtype)

    def send(self, token: Array, module: int) -> Array:
        """The message of one module."""
        if module not in self.plans:
            expert = self.pool.expert(module)
            assert isinstance(expert, Expert), "a pool of compiled modules has no other ones"
            self.plans[module] = plan_one_token(expert.plan, of_arrays=True)
        found: Array = self.plans[module].compute((token,))[0]
        return found
