"""Where a computation asks for a value that lies on the device, and so waits for all that was asked of it before."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

ASKING = {
    getattr(Tensor, name)
    for name in ("item", "tolist", "cpu", "numpy", "__bool__", "__float__", "__int__", "__index__", "__array__")
}
SIZED = {torch.ops.aten.nonzero.default, torch.ops.aten.masked_select.default}  # results as long as the data say
READ = {torch.ops.aten._local_scalar_dense.default, torch.ops.aten.equal.default}
HOST = ("modgraph/data/", "modgraph/training/reading.py", "torch/optim/")  # whose tensors are the processor's own


class Waits:
    """Within it, the places in modgraph that wait, each `file: operation`, as often as they do."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def __enter__(self) -> Waits:
        self.modes = [_Functions(self), _Operations(self)]
        for mode in self.modes:
            mode.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        for mode in reversed(self.modes):
            mode.__exit__(*raised)

    def note(self, what: str, frame: FrameType | None) -> None:
        """Note an operation at the innermost place in modgraph, where that is not the processor's own work."""
        while frame is not None:
            name = frame.f_code.co_filename
            if any(part in name for part in HOST):
                return
            if "/modgraph/" in name:
                self.found.append(f"{Path(name).parent.name}/{Path(name).name}: {what}")
                return
            frame = frame.f_back


class _Functions(TorchFunctionMode):
    def __init__(self, waits: Waits) -> None:
        super().__init__()
        self.waits = waits

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in ASKING:
            self.waits.note(function.__name__, sys._getframe(1))
        return function(*args, **(kwargs or {}))


class _Operations(TorchDispatchMode):
    def __init__(self, waits: Waits) -> None:
        super().__init__()
        self.waits = waits

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in READ | SIZED or (function is torch.ops.aten.index.Tensor and _by_mask(args[1])):
            self.waits.note(str(function), sys._getframe(1))
        return function(*args, **(kwargs or {}))


def _by_mask(indices: Any) -> bool:
    return any(each is not None and each.dtype == torch.bool for each in indices)
