"""What a function takes from outside of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map_only

On = Callable[[Any], Any]


class Outside:
    """Tensors that are neither arguments of a function nor made by it, in the order in which it takes them."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []

    @contextmanager
    def found(self, arguments: Sequence[Tensor]) -> Iterator[None]:
        """Within it, those that torch's functions take are kept."""
        known = {id(each): each for each in arguments}

        def before(each: Tensor) -> Tensor:
            if id(each) not in known:
                known[id(each)] = each
                self.tensors.append(each)
            return each

        def after(each: Tensor) -> Tensor:
            return known.setdefault(id(each), each)

        with _Seen(before, after):
            yield

    @contextmanager
    def replaced(self, others: Sequence[Tensor]) -> Iterator[None]:
        """Within it, torch's functions take others in their place."""
        instead = {id(old): new for old, new in zip(self.tensors, others, strict=True)}
        with _Seen(lambda each: instead.get(id(each), each), lambda each: each):
            yield


class _Seen(TorchFunctionMode):
    """Shows what torch's functions are given, and what they give."""

    def __init__(self, before: On, after: On) -> None:
        super().__init__()
        self.before, self.after = before, after

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = tree_map_only(Tensor, self.before, (args, kwargs or {}))
        result = function(*args, **kwargs)
        for each in tree_leaves(result):
            if isinstance(each, Tensor):
                self.after(each)
        return result
