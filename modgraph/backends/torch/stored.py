"""Stored pools: one parameter [M, ...] for each weight of a module. Its rows have the names of the modules' weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from modgraph.backends.torch.construct import Namespace
from modgraph.backends.torch.regions import CompiledPool, Expert
from modgraph.ir import OpNode, PoolNode, join_name
from modgraph.nn import Parameter
from modgraph.nn.grouped import SortedRows, Stack, has_product, weights_of

FEW_GATHERED = 2**10  # gathering so many numbers takes as long as a module's share of a grouped product


class Storage(Namespace):
    """Stacked weights, by the path that each has in a module. The pool reads and writes their rows in state dicts."""

    def _save_to_state_dict(self, *_: Any) -> None:
        pass

    def _load_from_state_dict(self, *_: Any) -> None:
        pass


class StoredPool(CompiledPool):
    """A homogeneous pool whose modules exist only as rows of its weights.

    `named` is the absolute name of the pool, `arrays` are the weights by their path in a module.
    """

    storage: ClassVar[type[Namespace]] = Storage
    holder: ClassVar[str] = "stored"

    def __init__(self, node: PoolNode, one: Expert, shared: Namespace | None) -> None:
        super().__init__(node, [one], shared)
        del self._modules["0"]
        self.size, self.named = node.size, node.name
        self._one = (one,)  # in a tuple, so that it is not registered: it only has the settings of all modules
        self.paths = {
            op.name: {name: join_name(op.owner, name) for name in weights_of(self.columns[op.name][0])}
            for op in self.region.graph.nodes_of(OpNode)
        }
        self._modules[self.holder] = self.storage()
        self.arrays: dict[str, Parameter] = {}
        for op, names in self.paths.items():
            for name, weight in weights_of(self.columns[op][0]).items():
                self._store(names[name], [self.size, *weight.shape])
        for op, names in self.paths.items():
            for name in names:
                drop_weight(self.columns[op][0], name)
        self.numbers = sum(each.weight[0].numel() for each in self.arrays.values())  # weights of one module

    @property
    def stored(self) -> Namespace:
        """The module that holds the stored weights, at the paths that they have in a module."""
        found = self._modules[self.holder]
        assert isinstance(found, Namespace)
        return found

    def _store(self, path: str, sizes: Sequence[int]) -> None:
        if path not in self.arrays:
            above = [path[:at] for at, each in enumerate(path) if each == "."]
            homes = {each: self.storage() for each in above}
            self.arrays[path] = self.stored.put(path, Parameter(0, sizes), homes)

    def train(self, mode: bool = True) -> Self:
        self._one[0].train(mode)
        return super().train(mode)

    # ------------------------------------------------------------ modules

    def stacks(self) -> dict[str, Stack]:
        return {
            op: Stack(self.columns[op][0], {name: self.arrays[path].weight for name, path in names.items()})
            for op, names in self.paths.items()
        }

    def expert(self, index: int) -> nn.Module:
        return self._view({path: each.weight[index] for path, each in self.arrays.items()})

    def experts(self) -> Sequence[nn.Module]:
        rows = {path: each.weight.unbind(0) for path, each in self.arrays.items()}
        return [self._view({path: own[j] for path, own in rows.items()}) for j in range(self.size)]

    def _view(self, rows: Mapping[str, Tensor]) -> nn.Module:
        """Make one module, whose weights are rows of the stored ones."""
        kept = (self.region, *(each for name, each in self.named_modules() if name.startswith("shared")))
        expert = deepcopy(self._one[0], {id(each): each for each in kept})
        for op, names in self.paths.items():
            for name, path in names.items():
                setattr(*drop_weight(expert.computes[op], name), rows[path])
        return expert

    def __getattr__(self, name: str) -> Any:
        """A module by its number, as in a pool that is not stored."""
        if name.isdecimal() and int(name) < self.size:
            return self.expert(int(name))
        return super().__getattr__(name)

    # ------------------------------------------------------------ messages

    def rows(self, x: Tensor) -> Tensor:
        return self.run_rows(x)

    def all(self, x: Tensor) -> Tensor:
        return self.run_all(x)

    def each(self, message: Callable[[int], Tensor]) -> Tensor:
        return self.rows(torch.stack([message(j) for j in range(self.size)], -self.rank - 1))

    def runs_at_once(self, x: Tensor) -> bool:
        matrices = (each.weight for each in self.arrays.values() if each.weight.dim() == 3)
        return x.device.type != "cpu" and len(x) > 0 and has_product(x, *matrices)

    def run_sorted(self, x: Tensor, module: Tensor, counts: Tensor) -> Tensor:
        """Gather the weights of each message's module if they are few, else run all modules as grouped products."""
        has_length = isinstance(x.shape[0], int) and not torch.compiler.is_compiling()
        is_small = has_length and len(x) * self.numbers <= FEW_GATHERED * self.size
        if is_small or torch.compiler.is_exporting():  # an exported graph has no node for each module
            return self.stack_weights()(module, x)
        run_grouped = self.group_modules()
        assert run_grouped is not None, "all ops of a stored pool run on stacked weights"
        return run_grouped(SortedRows(module, counts), x)

    # ------------------------------------------------------------ state dicts

    def row_names(self, path: str, above: str) -> list[str]:
        """The names of a weight's rows below a path."""
        return [f"{above}{j}.{path}" for j in range(self.size)]

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        found = super().state_dict(*args, destination=destination, prefix=prefix, keep_vars=keep_vars)
        weights = {path: whole(each.weight) for path, each in self.arrays.items()}
        rows = {path: (each if keep_vars else each.detach()).unbind(0) for path, each in weights.items()}
        for j in range(self.size):
            for path, own in rows.items():
                found[f"{prefix}{j}.{path}"] = own[j]
        return found

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Tensor],
        prefix: str,
        local_metadata: Mapping[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        assign, known = local_metadata.get("assign_to_params_buffers", False), set[str]()
        for path, array in self.arrays.items():
            names = self.row_names(path, prefix)
            known.update(names)
            missing_keys += [name for name in names if strict and name not in state_dict]
            given = {j: state_dict[name] for j, name in enumerate(names) if name in state_dict}
            own = array.weight.shape[1:]
            wrong = [
                f"size mismatch for {names[j]}: {[*x.shape]}, not {[*own]}" for j, x in given.items() if x.shape != own
            ]
            error_msgs += wrong
            if given and not wrong:
                _load_rows(array, given, assign)
        known_prefix = f"{prefix}shared."
        others = (key for key in state_dict if key.startswith(prefix) and key not in known)
        unexpected_keys += [key for key in others if strict and not key.startswith(known_prefix)]


@torch.no_grad()
def _load_rows(array: Parameter, given: Mapping[int, Tensor], assign: bool) -> None:
    """Load rows of a stored weight, or replace it by them."""
    weight = array.weight
    if len(given) == len(weight):
        stacked = torch.stack([given[j] for j in range(len(weight))])
    else:
        stacked = whole(weight).clone()
        for j, row in given.items():
            stacked[j] = row
    if assign:
        array.home.register_parameter(array.name, nn.Parameter(stacked, weight.requires_grad))
    else:
        weight.copy_(distribute(stacked, weight))


def whole(weight: Tensor) -> Tensor:
    """A weight, gathered if it is divided among processes."""
    gather = getattr(weight, "full_tensor", None)
    found: Tensor = weight if gather is None else gather()
    return found


def distribute(whole: Tensor, like: Any) -> Tensor:
    """Divide a whole tensor among processes as another is, if it is."""
    mesh = getattr(like, "device_mesh", None)
    if mesh is None:
        return whole
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(whole.to(like.device), mesh, like.placements, src_data_rank=None)


def drop_weight(module: Any, name: str) -> tuple[Any, str]:
    """Remove a module's parameter, or a learned array; return the owner and the attribute."""
    path, _, last = (module.name if isinstance(module, Parameter) else name).rpartition(".")
    home = module.home if isinstance(module, Parameter) else module.get_submodule(path)
    home._parameters.pop(last, None)
    return home, last


# ---------------------------------------------------------------- the stored weights of a model


@dataclass(frozen=True, eq=False)
class StoredWeight:
    """One weight of all modules of a stored pool: its name, such as `expert.*.linear.weight`, and those of its rows."""

    name: str
    rows: Sequence[str]
    array: Parameter

    @property
    def weight(self) -> Tensor:
        return self.array.weight


def list_stored(model: nn.Module) -> Iterator[StoredWeight]:
    """List the stored weights of a model."""
    for pool in model.modules():
        if isinstance(pool, StoredPool) and isinstance(pool.stored, Storage):
            for path, array in pool.arrays.items():
                yield StoredWeight(f"{pool.named}.*.{path}", pool.row_names(path, f"{pool.named}."), array)


def tensors_by_name(model: nn.Module) -> dict[str, Tensor]:
    """The tensors of a model by name; a stored weight once, for all its rows."""
    found: MutableMapping[str, Tensor] = model.state_dict(keep_vars=True)
    for stored in list_stored(model):
        for row in stored.rows:
            del found[row]
        found[stored.name] = stored.weight
    return dict(found)
