"""The routers that every spec knows, read when a spec names them."""

from __future__ import annotations

from functools import cache

from modgraph.diagnostics import Report
from modgraph.elaboration.entities import BlockEntity
from modgraph.elaboration.scope import Scope
from modgraph.routers.prelude import definitions
from modgraph.syntax import parse


@cache
def prelude_router(name: str) -> BlockEntity | None:
    """The definition of a router of the vocabulary, or None."""
    written = definitions().get(name)
    if written is None:
        return None
    report, scope = Report(), Scope()
    file = parse(written.source, report)
    assert file is not None, f"{written.source.name}: {report.diagnostics}"
    for block in file.blocks:
        scope.declare(block.name, BlockEntity(block, scope))
    for router in file.routers:
        scope.routers[router.name] = BlockEntity(router, scope)
    found: BlockEntity = scope.routers[name]
    return found
