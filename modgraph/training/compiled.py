"""Steps that `torch.compile` makes kernels of: `train.compile` of a recipe."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import torch
from torch import nn

from modgraph.diagnostics import ModgraphError
from modgraph.training.errors import CannotCompile

Call = Callable[..., Any]
BACKEND = "inductor"
OPTIONS: dict[str, dict[str, Any]] = {
    "inductor": {
        "fallback_random": True,  # noise is drawn by torch's own generators, so that a step computes what it did
        "layout_optimization": False,  # convolutions of what a module is sent would fail in an assertion of torch
    }
}


class Compiled(nn.Module):
    """A module whose calls are compiled: as one graph, where that cannot be in pieces, and where that cannot be either,
    not at all. It says so once."""

    def __init__(self, module: nn.Module, log: TextIO | None) -> None:
        super().__init__()
        torch.compiler.reset()  # what was compiled for another graph counts towards the limit of this one
        self.module = module
        self._log = log
        self._ways: list[Call] = [compiled(module, whole=True), compiled(module, whole=False), module.__call__]

    def forward(self, *arguments: Any) -> Any:
        from torch._dynamo.exc import FailOnRecompileLimitHit, TorchDynamoException

        while len(self._ways) > 1:
            try:
                return self._ways[0](*arguments)
            except FailOnRecompileLimitHit:
                self._ways = self._ways[-1:]
                self._say("batches have too many lengths for a step to be compiled for each; it no longer is")
            except TorchDynamoException as error:
                del self._ways[0]
                how = "in pieces" if len(self._ways) > 1 else "not at all"
                self._say(f"the step is compiled {how}, since torch fails otherwise: {first_line(error)}")
        return self._ways[0](*arguments)

    def _say(self, text: str) -> None:
        if self._log is not None:
            print(f"train.compile: {text}", file=self._log)


def compiled(module: nn.Module, whole: bool) -> Call:
    """Calls of a module as torch compiles them; the module is left as it is, and so are the names of its weights."""

    def run(*arguments: Any) -> Any:
        return module(*arguments)

    return torch.compile(run, fullgraph=whole, backend=BACKEND, options=OPTIONS.get(BACKEND))


def first_line(error: Exception) -> str:
    """The first line of a message of torch, which has many."""
    return str(error).strip().partition("\n")[0]


def refuse_without_compiler(device: torch.device) -> None:
    """Raises `ModgraphError` where torch cannot make kernels on this machine."""
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
