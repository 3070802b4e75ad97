"""What `torch.compile` takes as one graph, without being asked to.

How many tokens reach a module is a size that torch knows in a run alone. It takes such sizes in a graph if that is
asked of its settings before a frame is traced, or else breaks the graph there, compiles what a step calls over and
over, and at the eighth time gives up. So that whoever writes `torch.compile(model)` need know none of this, a call is
a frame that torch leaves alone, and the call in it, where the settings hold, is the one that is traced.
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
KERNELS = {"layout_optimization": False}  # a convolution of what a module is sent fails in an assertion of torch


def untraced(function: Callable[P, R]) -> Callable[P, R]:
    """A function that torch traces where another calls it, but not by itself; what it calls is."""
    return _skipped(function, eval_frame._FrameAction.DEFAULT)


def eager(function: Callable[P, R]) -> Callable[P, R]:
    """A function that torch traces where another calls it, but not by itself, nor what it calls."""
    return _skipped(function, eval_frame._FrameAction.SKIP)


def _skipped(function: Callable[P, R], calls: Any) -> Callable[P, R]:
    code = function.__code__
    eval_frame.set_code_exec_strategy(code, eval_frame._FrameExecStrategy(eval_frame._FrameAction.SKIP, calls))
    return function


def whole_graph(function: Callable[P, R]) -> Callable[P, R]:
    """A function that is compiled as one graph wherever it is compiled."""

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

    return untraced(call)
