"""Lets `torch.compile` compile a call of a model as one graph, without settings by the user.

The number of tokens that reach a module is known only at run time. torch includes such sizes in a graph only if its
settings say so before it traces a frame; else it breaks the graph there, compiles the callees of a step again and
again, and gives up the eighth time. So the outer frame of a call is one that torch does not trace: it changes the
settings, and torch traces the inner frame under them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")
eval_frame: Any = torch._C._dynamo.eval_frame
CAPTURE = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}
KERNELS = {"layout_optimization": False}  # else convolutions of routed messages fail in an assertion of torch


def disable_tracing(function: Callable[P, R]) -> Callable[P, R]:
    """Keep torch from tracing a function by itself; torch still traces its callees, and it within a caller."""
    return _skip(function, eval_frame._FrameAction.DEFAULT)


def eager(function: Callable[P, R]) -> Callable[P, R]:
    """Keep torch from tracing a function and its callees by themselves; it still traces them within a caller."""
    return _skip(function, eval_frame._FrameAction.SKIP)


def _skip(function: Callable[P, R], calls: Any) -> Callable[P, R]:
    code = function.__code__
    eval_frame.set_code_exec_strategy(code, eval_frame._FrameExecStrategy(eval_frame._FrameAction.SKIP, calls))
    return function


def whole_graph(function: Callable[P, R]) -> Callable[P, R]:
    """Make torch compile a function as one graph."""

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        if torch.compiler.is_dynamo_compiling() or "torch._dynamo" not in sys.modules:
            return function(*arguments, **named)
        if eval_frame.get_eval_frame_callback() is None:  # calls from here are not compiled
            return function(*arguments, **named)
        with ExitStack() as settings:
            settings.enter_context(sys.modules["torch._dynamo"].config.patch(CAPTURE))
            if "torch._inductor.config" in sys.modules:
                settings.enter_context(sys.modules["torch._inductor.config"].patch(KERNELS))
            return function(*arguments, **named)

    return disable_tracing(call)
