"""Values that lack axes of the senders: repeated for each."""

from __future__ import annotations

from typing import Any

from modgraph.diagnostics import Span
from modgraph.elaboration.apply import apply_op
from modgraph.elaboration.entities import OpUse, Poison, Tensor
from modgraph.elaboration.site import Site
from modgraph.ops import Op
from modgraph.ops.axes import Expand, NewAxis
from modgraph.types import Shape


def for_each_sender(value: Tensor, rank: int, like: Tensor, senders: Shape, span: Span | None, site: Site) -> Any:
    """A value whose last axes, so many, are no senders', with the axes of all senders before them, which `like` has.

    It is the same along those that it lacks. None if it has others, or has them in another order.
    """
    left = [*value.type.shape[: len(value.type.shape) - rank]]
    for behind, axis in enumerate(reversed(senders)):
        if left and left[-1] == axis:
            left.pop()
            continue
        at = -rank - behind - 1
        fixed = axis.size is not None
        op: Op = NewAxis(length=axis.size or 1, axis=axis.name, at=at) if fixed else Expand(axis=axis.name, at=at)
        value = apply_op(OpUse(op), (value,) if fixed else (value, like), span, site)
        if isinstance(value, Poison):
            return value
    return None if left else value
