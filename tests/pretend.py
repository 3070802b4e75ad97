"""A device that is not there: its tensors have shapes and types, but no values, and what would wait for it is counted.

Registering it changes torch for a whole process, and comes before any gradient, so it is for processes of its own:
`python -m tests.pretend FOLDER "SPEC PRECISION" …` prints what a training step of each spec waits for.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

import modgraph
from modgraph.backends.report import random_batch
from modgraph.data.in_python import InPython
from modgraph.nn import array, grouped, message_passing, pool, rotary
from modgraph.nn.device import Transfer
from modgraph.training.divergence import FiniteCheck
from modgraph.training.engine import Engine
from modgraph.training.processes import Precise
from modgraph.training.run import start_run
from modgraph.training.state import optimizer_of

SPECS = Path(__file__).parents[1] / "specs"
KIND, CAST = "pretended", "AutocastPrivateUse1"
IN_16_BITS = ("linear", "matmul", "mm", "bmm", "addmm", "conv2d", "scaled_dot_product_attention")
READS = ("_local_scalar_dense", "nonzero", "is_nonzero", "masked_select", "equal", "bincount", "_unique2", "unique_dim")
BOOLEAN = (torch.bool, torch.uint8)
CONSTANTS = (array, rotary)  # modules that make constants on a device
kept: list[Any] = []  # libraries, which end what they registered when they are deleted


def register() -> torch.device:
    """Make the device known to torch, with products in 16 bits under autocast."""
    _setup_privateuseone_for_python_backend(KIND)
    getattr(torch, KIND).get_amp_supported_dtype = lambda: [torch.bfloat16]
    every, products = torch.library.Library("_", "IMPL", CAST), torch.library.Library("aten", "IMPL", CAST)
    every.fallback(torch.library.fallthrough_kernel)
    for name in IN_16_BITS:
        products.impl(name, _in_16_bits(getattr(torch.ops.aten, name).default), CAST)
    kept.extend((every, products))
    return torch.device(KIND, 0)


def _in_16_bits(op: Any) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        floats = (torch.float32, torch.bfloat16)
        given = tuple(each.bfloat16() if isinstance(each, Tensor) and each.dtype in floats else each for each in given)
        keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)
        with torch._C._ExcludeDispatchKeyGuard(keys):
            return op(*given, **named)

    return call


class Waits(TorchDispatchMode):
    """Counts what waits for the device, by the function of modgraph that asks for it: reads of values, and copies
    between the device and the host."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found, name = func(*args, **(kwargs or {})), func.overloadpacket.__name__
        kinds = [each.device.type for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        if name in ("_to_copy", "copy_"):
            origin = kinds[-1]
            if origin != found.device.type:
                self.note("read" if origin == KIND else "written")
        elif KIND in kinds and (name in READS or _takes_a_mask(name, args)):
            self.note("read")
        return found

    def note(self, what: str) -> None:
        frames = [frame for frame in traceback.extract_stack() if "/modgraph/" in frame.filename]
        self.found[f"{what} by {Path(frames[-1].filename).stem}.{frames[-1].name}"] += 1


def _takes_a_mask(name: str, args: Any) -> bool:
    """Whether an op indexes by a mask, whose number of true values is the size of its result."""
    masks = args[1] if name.startswith("index") and len(args) > 1 and isinstance(args[1], list | tuple) else ()
    return any(isinstance(each, Tensor) and each.dtype in BOOLEAN for each in masks)


def _pays(x: Tensor, module: Any) -> bool:
    """As `pays` on an accelerator."""
    sizes = [size for weight in module.parameters() if weight.dim() == 2 for size in weight.shape]
    return torch.is_autocast_enabled(KIND) and all(size % 8 == 0 for size in sizes)


def _copy_without_waiting(values: Sequence[float], dtype: torch.dtype, device: torch.device) -> Tensor:
    """As `constant` on an accelerator, which copies from pinned memory."""
    return torch.empty(len(values), dtype=dtype, device=device)


@contextmanager
def on_device(engine: Engine, device: torch.device) -> Iterator[None]:
    """Move a training to the device."""
    shapes = ShapeEnv(allow_scalar_outputs=True, allow_dynamic_output_shape_ops=True)
    state, processes = engine.state, engine.processes
    processes.device, engine.finite = device, FiniteCheck(50)
    learnt = {name: weight.requires_grad for name, weight in state.model.named_parameters()}
    with ExitStack() as stack:
        stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True, shape_env=shapes))
        stack.enter_context(patch.dict(grouped.GROUPED, {KIND: grouped.GROUPED["cuda"]}))
        stack.enter_context(patch.object(pool, "pays", _pays))
        for module in CONSTANTS:
            stack.enter_context(patch.object(module, "constant", _copy_without_waiting))
        weights = {name: torch.empty_like(each, device=device) for name, each in state.model.state_dict().items()}
        state.model.load_state_dict(weights, assign=True)
        for name, weight in state.model.named_parameters():
            weight.requires_grad_(learnt[name])
        objective = Precise(state.objective.module, device, torch.float32, processes.precision == "bfloat16")
        optimizer = optimizer_of(
            engine.train.optimizer, [weight for weight in state.model.parameters() if weight.requires_grad]
        )
        engine.state = replace(state, objective=objective, optimizer=optimizer)
        yield


def count_waits(spec: str, precision: str, folder: Path, device: torch.device) -> dict[str, int]:
    """What a training step of a spec on the device waits for."""
    program = modgraph.load(SPECS / f"{spec}.mod")
    batch = random_batch(program.build())
    arrays = {name: each.numpy() for name, each in batch.items()}
    examples = len(next(iter(arrays.values())))
    recipe = {"train": {"epochs": 1, "batch": examples, "precision": precision, "device": "cpu"}}
    data, out = InPython.from_splits({"train": arrays, "test": arrays}), folder / spec.replace("/", "-") / precision
    with start_run(program, recipe, {}, str(out), data=data) as engine, on_device(engine, device):
        moved = {name: torch.empty_like(each, device=device) for name, each in batch.items()}
        with Waits() as waits:
            engine._step(torch.arange(examples), Transfer(moved))
    return dict(sorted(waits.found.items()))


def main() -> None:
    device, folder = register(), Path(sys.argv[1])
    with patch.object(message_passing, "FEW", 0):  # edges by torch_geometric
        found = {name: count_waits(*name.split(), folder, device) for name in sys.argv[2:]}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
