"""What a router that is defined in the language shows."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from modgraph.nn.padding import cleared


class Defined:
    """A route's value and what its router recorded, zero in padding; all of it is computed elsewhere."""

    def __call__(
        self, tokens: Tensor, pool: Any, router: Any, *shown: Tensor, real: tuple[Tensor | None, ...] | None = None
    ) -> tuple[Tensor, ...]:
        """The value and the records as they are given, what was recorded in earlier rounds behind them."""
        if real is None:
            return shown
        return tuple(cleared(each, mask) for each, mask in zip(shown, real[1:], strict=True))
