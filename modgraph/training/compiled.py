"""Compile steps with `torch.compile`: `train.compile` of a recipe."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.backends.torch.instance import Instance, units
from modgraph.backends.torch.run import Context
from modgraph.backends.torch.whole_graph import CAPTURE
from modgraph.diagnostics import ModgraphError
from modgraph.training.errors import CannotCompile

Call = Callable[..., Any]
Say = Callable[[str], object]
BACKEND = "inductor"
OPTIONS: dict[str, dict[str, Any]] = {
    "inductor": {
        "fallback_random": True,  # torch's own generators sample noise, so that results equal those without compilation
        "layout_optimization": False,  # with it, convolutions of routed tokens fail in an assertion of torch
    }
}


class Attempts:
    """Compiled calls of a function: as one graph, else in pieces, else not compiled. Each fall-back is reported
    once."""

    def __init__(self, call: Call, what: str, say: Say) -> None:
        self._what = what
        self._say = say
        compiled = partial(torch.compile, call, backend=BACKEND, options=OPTIONS.get(BACKEND))
        self._ways: list[Call] = [compiled(fullgraph=True), compiled(fullgraph=False), call]

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        from torch._dynamo.exc import FailOnRecompileLimitHit, TorchDynamoException

        while len(self._ways) > 1:
            try:
                return self._ways[0](*arguments, **named)
            except FailOnRecompileLimitHit:
                self._ways = self._ways[-1:]
                problem = f"{self._what} is no longer compiled: batches have too many lengths"
            except TorchDynamoException as error:
                del self._ways[0]
                how = "in pieces" if len(self._ways) > 1 else "not at all"
                first_line = str(error).strip().partition("\n")[0]
                problem = f"{self._what} is compiled {how}, since torch fails otherwise: {first_line}"
            self._say(f"train.compile: {problem}")
        return self._ways[0](*arguments, **named)


def compile_step(module: nn.Module, say: Say) -> None:
    """Compile the calls of a module; `say` reports where torch cannot."""
    torch.compiler.reset()  # code for another graph counts towards the limit of this one
    module.forward = Attempts(module.forward, "the step", say)


def compile_blocks(module: nn.Module, model: nn.Module, say: Say) -> None:
    """Compile the rounds and blocks of a model in calls of a module, each definition once. Code around them is not
    compiled. `say` reports where torch cannot."""
    torch.compiler.reset()
    compiles, whole = SimpleNamespace(now=False), module.forward
    known: dict[type[Instance], Attempts] = {}
    for unit in units(model):
        kind = type(unit)
        if kind not in known:
            known[kind] = Attempts(kind.forward, f'"{unit.call.definition}"', say)
        unit.forward = partial(_call, unit, known[kind], compiles)  # type: ignore[method-assign]
    if not known:
        say("train.compile: blocks: the model has no rounds and no blocks to compile")

    def run(*arguments: Any) -> Any:
        from torch._dynamo import config

        compiles.now = True
        try:
            with config.patch(CAPTURE):
                return whole(*arguments)
        finally:
            compiles.now = False

    module.forward = run


def _call(unit: Instance, attempts: Attempts, compiles: SimpleNamespace, *operands: Tensor, **named: Any) -> Any:
    """Call a round or block. Masks are built inside, so that torch sees no other difference between calls of a
    definition."""
    context: Context | None = named.get("context")
    if not compiles.now or context is None:
        return type(unit).forward(unit, *operands, **named)
    return attempts(unit, *operands, plan=named["plan"], context=Context(context.forced, context.active))


def refuse_without_compiler(device: torch.device) -> None:
    """Raises `ModgraphError` where torch cannot compile kernels on this machine."""
    if BACKEND != "inductor":
        return
    if device.type == "cuda":
        from torch.utils._triton import has_triton

        if not has_triton():
            raise ModgraphError([CannotCompile(reason="Triton is not installed, or knows no such device")])
        return
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        get_cpp_compiler()
    except (InvalidCxxCompiler, RuntimeError) as error:
        raise ModgraphError([CannotCompile(reason="this machine has no C++ compiler")]) from error
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if sys.platform == "linux" and not header.exists():
        raise ModgraphError([CannotCompile(reason=f"Python's headers are not installed: there is no {header}")])
