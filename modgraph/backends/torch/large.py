"""Large pools: stored weights under names of their own, `expert.*.linear.weight`, for a million names are too many."""

from __future__ import annotations

from typing import Any

from modgraph.backends.torch.construct import Namespace
from modgraph.backends.torch.regions import CompiledPool
from modgraph.backends.torch.stored import StoredPool
from modgraph.ir import EACH


class LargePool(StoredPool):
    """A stored pool whose state dict has the stored weights themselves. `pool.lookup("17.linear.weight")` is a row."""

    storage = Namespace
    holder = EACH

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        return CompiledPool.state_dict(self, *args, destination=destination, prefix=prefix, keep_vars=keep_vars)

    def _load_from_state_dict(self, *args: Any) -> None:
        CompiledPool._load_from_state_dict(self, *args)
