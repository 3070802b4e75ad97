"""Where a node stands in what the author wrote: the uses of definitions that hold it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from modgraph.diagnostics import Span

Kind = Literal["block", "router", "module", "round"]


@dataclass(frozen=True, eq=False)
class Call:
    """One use of a definition: a block, the text of a router, a module, or one round of a `repeat`.

    `definition` is what the author calls it: the name of the block, router, module or loop. Its nodes are called below
    `path`, its weights below `weights`. `key` is that of a round, `members` are the names that the loop's variable
    gives a key: `h` in `h[i] = …`. `outer` is the call that it stands in. Two calls are never equal.
    """

    kind: Kind
    definition: str
    path: str
    weights: str
    outer: Call | None = None
    key: int | str | None = None
    members: frozenset[str] = frozenset()
    span: Span | None = field(default=None, repr=False)

    def chain(self) -> Iterator[Call]:
        """This call and those around it, from the inside."""
        call: Call | None = self
        while call is not None:
            yield call
            call = call.outer
