"""The resources of a training: device, precision, and the processes that share a batch (torch.distributed).

Under torchrun every process has a part of each batch, and either all weights (DDP) or a part of them, gathered for each
step (FSDP). Gradients are averaged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from modgraph.backends.torch import make_generator
from modgraph.backends.torch.instance import units
from modgraph.diagnostics import ModgraphError
from modgraph.log import log
from modgraph.nn import DividedPool, Group, Shard, use_shard
from modgraph.training.errors import CannotDividePools, NoDevice
from modgraph.training.experts import Experts, add_over, select

T = TypeVar("T")
DDP, FSDP = "ddp", "fsdp"
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.float32, "float64": torch.float64}  # of the weights


@dataclass(frozen=True)
class Precise:
    """A module that computes in a precision: with weights of `dtype`, and if `mixed`, with products in 16 bits."""

    module: nn.Module
    device: torch.device
    dtype: torch.dtype
    mixed: bool

    def __call__(
        self, batch: Mapping[str, Tensor], *more: bool
    ) -> tuple[list[Tensor], dict[str, Tensor], dict[str, Tensor]]:
        default = torch.get_default_dtype()
        torch.set_default_dtype(self.dtype)
        try:
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.mixed):
                cast = {name: _cast(each, self.dtype) for name, each in batch.items()}
                values, losses, loads = self.module(cast, *more)
        finally:
            torch.set_default_dtype(default)
        known = {name: _cast(each, default) for name, each in losses.items()}
        return [_cast(each, default) for each in values], known, loads


def _cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.to(dtype) if x.is_floating_point() else x


class Processes:
    """The processes of one training, or the only one; groups of `experts` divide pools. Raises `ModgraphError` if the
    device is missing."""

    def __init__(self, device: str, precision: str, strategy: str = DDP, experts: int = 1) -> None:
        self.size = count_processes()
        self.rank, local = (int(os.environ.get(name, 0)) for name in ("RANK", "LOCAL_RANK"))
        kind, index = _place(device)
        if self.size > 1 and index is not None:
            raise ModgraphError([NoDevice(device=device, reason="each process chooses its device")])
        self.is_rank_zero = self.rank == 0  # the process that writes files and logs
        self.divides = self.size > 1 and strategy == FSDP
        self.precision = precision
        self.device = torch.device(kind) if kind != "cuda" else torch.device(kind, local if index is None else index)
        if kind == "cuda":
            torch.cuda.set_device(self.device)
        if self.size > 1:
            dist.init_process_group("nccl" if kind == "cuda" else "gloo")
        self.group: Any = dist.new_group() if self.size > 1 else None
        self.experts = Experts(experts, self.size, self.rank) if experts > 1 and self.size > 1 else None

    @property
    def pool_group(self) -> Group | None:
        """The processes that divide the pools with this one; None where each holds all modules."""
        return None if self.experts is None else self.experts.group

    def say(self, text: str) -> None:
        """Log a line on rank zero."""
        if self.is_rank_zero:
            log.info(text)

    def own(self, indices: Tensor) -> tuple[int, int]:
        """Return the start and the stop of this process's part of a batch; parts differ by one example at most."""
        return self.rank * len(indices) // self.size, (self.rank + 1) * len(indices) // self.size

    @contextmanager
    def shard(self, indices: Tensor, seed: int, step: int) -> Iterator[Tensor]:
        """Yield this process's part of a batch. Inside the context, sums and noise are those of the whole batch."""
        if self.size == 1:
            yield indices
            return
        start, stop = self.own(indices)
        generator = make_generator(seed, "own noise", step, self.rank)
        inside = None if self.experts is None else self.experts.messages(generator)
        with use_shard(Shard(start, stop, len(indices), self._add, generator, inside)):
            yield indices[start:stop]

    @contextmanager
    def share(self, examples: int) -> Iterator[slice]:
        """Yield this process's part of a batch that the processes which divide the pools evaluate together."""
        assert self.experts is not None, "no process shares its batches"
        group, generator = self.experts.group, torch.Generator()
        start, stop = group.place * examples // group.size, (group.place + 1) * examples // group.size
        inside = self.experts.messages(generator, own_batch=True)
        with use_shard(Shard(start, stop, examples, lambda x: add_over(x, group.handle), generator, inside)):
            yield slice(start, stop)

    def setup(
        self, module: nn.Module, optimizer_of: Callable[[], torch.optim.Optimizer]
    ) -> tuple[Any, torch.optim.Optimizer]:
        """Move a module to the device, average its gradients over the processes, and create its optimizer."""
        if not self.any(any(parameter.requires_grad for parameter in module.parameters())):
            return module.to(self.device), optimizer_of()
        dtype, ready = PRECISIONS[self.precision], module.to(self.device)
        if dtype is torch.float64:
            ready.double()
        of_modules = tensors_of_modules(ready)  # other processes do not have them
        if self.divides:
            divide(ready, self.device, {each for each in of_modules.values() if isinstance(each, nn.Parameter)})
        optimizer = optimizer_of()  # it refers to the parts of divided weights
        learns = any(each.requires_grad for name, each in ready.named_parameters() if name not in of_modules)
        if self.size > 1 and not self.divides and learns:  # DDP refuses a module without
            parallel: Any = nn.parallel.DistributedDataParallel
            parallel._set_params_and_buffers_to_ignore_for_model(ready, [*of_modules])
            ready = parallel(ready, find_unused_parameters=True)
        return Precise(ready, self.device, dtype, self.precision == "bfloat16"), optimizer

    def gather(self, value: T) -> list[T]:
        """Return a value of every process, in their order."""
        if self.size == 1:
            return [value]
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, value)
        return found

    def any(self, found: bool) -> bool:
        """Whether any process that divides the pools found something; without such, what this one found."""
        return found if self.experts is None else bool(self.experts.first(found or None))

    def merge(self, own: dict[str, T]) -> dict[str, T]:
        """Merge entries of the modules that each process holds with those of the others."""
        return own if self.experts is None else self.experts.merge(own)

    def average(self, weights: Mapping[str, nn.Parameter], of_modules: Set[str]) -> None:
        """Average the gradients of the modules that this process holds; DDP and FSDP average the others."""
        if self.experts is not None:
            self.experts.average([*select(weights, of_modules)[0].values()])

    def on_rank_zero(self, compute: Callable[[], T]) -> T:
        """Return to all processes what rank zero computes. Raises its `ModgraphError` in all of them."""
        if self.size == 1:
            return compute()
        found: Any = None
        if self.is_rank_zero:
            try:
                found = compute(), ()
            except ModgraphError as error:
                found = None, error.diagnostics
        value, mistakes = self.gather(found)[0]
        if mistakes:
            raise ModgraphError(mistakes)
        return cast(T, value)

    def mean(self, x: Tensor) -> Tensor:
        """Return the mean of a number over the processes, without gradient."""
        return x.detach() if self.size == 1 else self._add(x.detach()) / self.size

    def totals(self, masks: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Count the true values of each mask, over all processes."""
        if not masks:
            return {}
        counts = torch.stack([mask.sum() for mask in masks.values()])
        return dict(zip(masks, (counts if self.size == 1 else self._add(counts)).unbind(), strict=True))

    def part(self, loss: Tensor, examples: int | Tensor) -> Tensor:
        """Return this process's part of a loss, such that the mean of the parts is the loss of the batch, a mean over
        so many examples. A loss per example is summed over the part; one over the batch is equal in every process."""
        if not loss.dim():
            return loss
        if isinstance(examples, Tensor):
            return loss.sum() * (self.size / examples.clamp(min=1).double()).to(loss.dtype)
        return loss.sum() * (self.size / max(1, examples))

    def _add(self, x: Tensor) -> Tensor:
        return add_over(x, self.group)

    def close(self) -> None:
        """Leave the group of processes."""
        self.group = self.experts = None
        if self.size > 1 and dist.is_initialized():
            dist.destroy_process_group()


def count_processes() -> int:
    """Return the number of processes that torchrun has started for this training; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", 1))


def refuse_experts(experts: int, resumes: bool) -> None:
    """Raises `ModgraphError` where the processes of this training cannot divide pools as its recipe says. A single one
    may resume a run of several."""
    size = count_processes()
    if experts == 1 or size % experts == 0 or (size == 1 and resumes):
        return
    problem, way_out = "does not divide the number of processes, {size}", "start {experts}, or a multiple, by torchrun"
    if size == 1:
        problem = "needs several processes, and this is the only one"
        way_out = "torchrun --nproc-per-node={experts} -m modgraph train …, or leave it out"
    texts = (each.format(size=size, experts=experts) for each in (problem, way_out))
    raise ModgraphError([CannotDividePools(experts=experts, problem=next(texts), way_out=next(texts))])


def tensors_of_modules(module: nn.Module) -> dict[str, Tensor]:
    """Return the weights and buffers of modules of divided pools, by the names that torch gives them."""
    pools = [(name, each) for name, each in module.named_modules() if isinstance(each, DividedPool)]
    prefixes = tuple(f"{name}.{place}." for name, pool in pools for place in pool.own_places)
    every = [*module.named_parameters(), *module.named_buffers()]
    return {name: each for name, each in every if prefixes and name.startswith(prefixes)}


def choose_device(device: str) -> torch.device:
    """Return the device that a recipe names, or the processor where this machine lacks it."""
    try:
        kind, index = _place(device)
    except ModgraphError:
        return torch.device("cpu")
    return torch.device(kind, index or 0) if kind != "cpu" else torch.device("cpu")


def _place(device: str) -> tuple[str, int | None]:
    """Return the kind of a device and its number. Raises `ModgraphError` if this machine lacks it."""
    available = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}
    if device == "auto":
        return next((kind for kind in ("cuda", "mps") if available[kind]), "cpu"), None
    kind, colon, number = device.partition(":")
    if kind not in available or (colon and not number.isdigit()):
        raise ModgraphError([NoDevice(device=device, reason="devices are cpu, cuda, cuda:1, mps or auto")])
    index = int(number) if colon and kind != "cpu" else None
    if (index or 0) >= available[kind]:
        known = ", ".join(f"{count} {name}" for name, count in available.items())
        raise ModgraphError([NoDevice(device=device, reason=f"this machine has: {known}")])
    return kind, index


# ---------------------------------------------------------------- divided weights (FSDP)
# Each process has a part of each weight, its gradient and its optimizer state. Stored and compared values are whole in
# every process; all processes gather them together. A scalar weight is divided as an array of length one, which one
# process holds.


def whole(x: Tensor, shape: Sequence[int] | None = None) -> Tensor:
    """Gather a tensor from all processes; a divided weight gets its declared shape."""
    full = getattr(x, "full_tensor", None)
    found: Tensor = x if full is None else full()
    return found if full is None or shape is None else found.reshape(shape)


def divide_like(x: Tensor, like: Tensor) -> Tensor:
    """Return this process's part of a whole tensor, divided like another of its shape; whole if that is whole."""
    placed: Any = like
    mesh = getattr(like, "device_mesh", None)
    if mesh is None:
        return x
    x = x if x.dim() else x.reshape(1)
    if x.shape != like.shape:
        return x
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(x.to(like.device), mesh, placed.placements, src_data_rank=None)


def divide(module: nn.Module, device: torch.device, kept: Set[nn.Parameter] = frozenset()) -> None:
    """Divide the weights of a module but `kept` among all processes, those of each round or block separately. They are
    gathered during its forward and backward passes."""
    from torch.distributed import get_world_size
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    for owner in module.modules():
        for name, weight in [*owner.named_parameters(recurse=False)]:
            if not weight.dim() and weight not in kept:  # torch does not divide scalars
                owner.register_parameter(name, nn.Parameter(weight.detach().reshape(1), weight.requires_grad))
    mesh = init_device_mesh(device.type, (get_world_size(),))
    for part in [*(unit for unit in units(module) if any(True for _ in unit.parameters())), module]:
        fully_shard(part, mesh=mesh, ignored_params={*kept})


@contextmanager
def unshard(module: Any) -> Iterator[None]:
    """Gather the weights of a divided module inside this context, for code that does not call the module itself."""
    inner: Any = getattr(module, "module", module)
    if hasattr(inner, "unshard"):
        inner.unshard()
    try:
        yield
    finally:
        if hasattr(inner, "unshard"):
            inner.reshard()
