"""Writes the steps of a plan: the lines of a function, and what its class must hold for them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from modgraph.backends.torch.plan import Plan
from modgraph.backends.torch.run import Once, Step
from modgraph.backends.torch.source.arrays import computing, is_array, told
from modgraph.backends.torch.source.body import RETURN, Body, called
from modgraph.backends.torch.source.classes import Class, Made
from modgraph.backends.torch.source.formulas import Expression, Value, formula, name
from modgraph.backends.torch.source.names import variable
from modgraph.backends.torch.source.quote import literal
from modgraph.backends.torch.source.starts import parameter as made_parameter
from modgraph.ir import Graph, OpNode, Result
from modgraph.nn import Constant, Parameter

ALONE = "modgraph.backends.torch.source.alone"  # the definitions that stand in such files alone
IMAGES = ("Conv2d", "MaxPool2d", "AvgPool2d", "GroupNorm")  # torch's own take [B, C, H, W] alone


Rules = Mapping[type, Callable[..., None]]


@dataclass
class Writer:
    """Writes into a body of a class. `paths` are the names of modules in the class's root, by identity; `inside` says
    that values have any outer axes, not that of the batch. `rules` write what is no op, by kind of what computes it."""

    body: Body
    home: Class
    graph: Graph
    paths: Mapping[int, str]
    rules: Rules = field(default_factory=dict)
    inside: bool = False
    prefix: str = ""  # of all names of weights

    def __post_init__(self) -> None:
        self.body.copied = self.home.file.copied

    def write(self, steps: Iterable[Step]) -> None:
        for step in steps:
            self.step(step)

    def step(self, step: Step) -> None:
        """The lines of one step."""
        compute: Any = step.compute
        if type(compute) in self.rules:
            self.rules[type(compute)](self, step, compute)
        elif isinstance(compute, Constant):
            self._constant(step, compute)
        elif isinstance(compute, Once):
            self._once(step, compute)
        elif isinstance(computing(compute), Parameter):
            self._parameter(step, computing(compute), bare=not isinstance(compute, Parameter))
        else:
            self._op(step, compute)

    # ------------------------------------------------------------ ops

    def _op(self, step: Step, module: nn.Module) -> None:
        real = self.body.real(step)
        values = self.body.said(step.operands)
        said = self.computed(step.node, module, values, real)
        results = [Result(step.node, at) for at in range(len(self.graph[step.node].types))]
        if len(results) > 1:
            self.body.assign_all(results, ast.unparse(said))
        else:
            self.body.gives(results[0], said, self.consumer(results[0]))

    def computed(self, node: str, module: nn.Module, values: list[Value], real: str | None = None) -> Expression:
        """The expression for what an op's module gives."""
        if not self._has_state(module):
            found = formula(module, values, self.home.file.copied) if real is None else None
            if found is not None:
                return found
            of = self.graph[node]
            function = self.home.helper(variable(node, of) if self.inside else _short(of), self._made(node))
        else:
            path = self.paths[id(module)]
            function = self.home.held(path, lambda: self._made(node))
        return called(function, [value.said for value in values], real=real)

    def _has_state(self, module: Any) -> bool:
        return any(True for _ in module.state_dict())

    def _made(self, node: str) -> str:
        """The call that makes an op's module."""
        path, positional, named = self.made(node)
        kind = path.rpartition(".")[2] if isinstance(path, str) else ""
        plain = path == "modgraph.nn.Linear" or (
            kind in IMAGES and not self.inside and len(self.graph.signature(self._node(node)).operands[0].shape) == 3
        )
        return self.home.file.made((f"torch.nn.{kind}" if plain else path, positional, named))

    def _node(self, name: str) -> OpNode:
        node = self.graph[name]
        assert isinstance(node, OpNode)
        return node

    def made(self, node: str) -> Made:
        return self.graph.signature(self._node(node)).constructor()

    # ------------------------------------------------------------ arrays that are the same for every example

    def _parameter(self, step: Step, parameter: Parameter, bare: bool) -> None:
        each, one = Result(step.node), Result(step.node, 1)
        path = self._node(step.node).owner.removeprefix(self.prefix)
        said = self.home.held(path, lambda: made_parameter(parameter.sizes, self.home, path))
        sizes = ", ".join(map(str, parameter.sizes))
        if bare:
            self.body.values |= dict.fromkeys((each, one), Value(name(said), not sizes, True, True))
            return
        if self.body.uses[each]:
            self.body.gives(each, self._each(said, step.operands[0], parameter.rank, sizes), self.consumer(each))
        if self.body.uses[one]:
            alone = said if self.inside else f"{said}[None]"
            self.body.values[one] = Value(name(alone), self.inside and not sizes, True, self.inside)

    def _constant(self, step: Step, constant: Constant) -> None:
        each, one = Result(step.node), Result(step.node, 1)
        like = self.body.like(step.operands[0])
        function = self.home.file.copied.needed((ALONE, "given"))
        self.body.add_readers(one, self.body.uses[each])
        given = f"{function}({literal(constant.sizes)}, {literal(list(constant.values))}, {like})"
        self.body.gives(one, name(given if self.inside else f"{given}[None]"), self.consumer(one))
        if self.body.uses[each]:
            (alone,) = self.body.variables([one])
            sizes = ", ".join(map(str, constant.sizes))
            self.body.gives(each, self._each(alone, step.operands[0], constant.rank, sizes), self.consumer(each))

    def _once(self, step: Step, once: Once) -> None:
        like, *operands = step.operands
        types = self.graph[step.node].types
        said = self.computed(step.node, once.compute, self.body.said(operands))  # type: ignore[arg-type]
        pairs = [(Result(step.node, at), Result(step.node, at + len(types))) for at in range(len(types))]
        for each, one in pairs:
            self.body.add_readers(one, int(self.body.uses[each] > 0))
        if len(pairs) == 1:
            self.body.gives(pairs[0][1], said, self.consumer(pairs[0][1]))
        else:
            self.body.assign_all([one for _, one in pairs], ast.unparse(said))
        for (each, one), type_ in zip(pairs, types, strict=True):
            if self.body.uses[each]:
                (alone,) = self.body.variables([one])
                sizes = ", ".join(str(axis.size) for axis in type_.shape)
                self.body.gives(each, self._each(alone, like, once.rank, sizes), self.consumer(each))

    def _each(self, alone: str, like: Result, rank: int, sizes: str) -> Expression:
        """What is the same for every example, for as many as a value has."""
        type_, x = self.body.type_of(like), self.body.like(like) if self.inside else self.body.batch
        if type_ is not None and type_.per == "batch":
            return name(alone)
        outer = f"len({x})" if not self.inside else f"*{x}.shape[:-{rank}]" if rank else f"*{x}.shape"
        return name(f"{alone}.expand({outer}, {sizes})")

    # ------------------------------------------------------------ who reads what

    def consumer(self, result: Result) -> str | None:
        """The step that reads a value, if one alone does."""
        return self.body.readers.get(result)


def reads(plan: Plan) -> tuple[list[Result], dict[Result, str]]:
    """All that the lines of a plan read, a value as often as it is read, and by which step."""
    found, readers = [*plan.wanted], dict[Result, str]()
    used = set(plan.wanted) | {each for step in plan.steps for each in (*told(step), *step.lengths)}
    for step in plan.steps:
        for each in told(step):
            found.append(each)
            readers[each] = step.node
        found += step.lengths
        expanded = is_array(step) and step.compute is computing(step.compute) and Result(step.node) in used
        found += step.operands[:1] * 2 if expanded else []
    if len(plan.wanted) == 1:
        readers.setdefault(plan.wanted[0], RETURN)
    return found, readers


def _short(of: Any) -> str:
    name: str = of.op.name
    return name
