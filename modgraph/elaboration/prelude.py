"""What a file defines, and the routers that every spec knows: those of the prelude, read when a spec names them."""

from __future__ import annotations

from functools import cache

from modgraph.diagnostics import Report
from modgraph.elaboration import errors
from modgraph.elaboration.entities import BlockEntity
from modgraph.elaboration.scope import Scope
from modgraph.routers.prelude import definitions
from modgraph.syntax import ast, parse


def declare_definitions(file: ast.File, scope: Scope, report: Report) -> None:
    """Put the blocks and the routers of a file into its scope; what is defined twice is told."""
    for block in file.blocks:
        if block.name in scope.names:
            report.add(errors.DuplicateName(span=block.name_span, name=block.name))
        scope.declare(block.name, BlockEntity(block, scope))
    for router in file.routers:
        if router.name in scope.routers:
            report.add(errors.DuplicateName(span=router.name_span, name=router.name))
        scope.routers[router.name] = BlockEntity(router, scope)


@cache
def prelude_router(name: str) -> BlockEntity | None:
    """The definition of a router of the vocabulary, or None."""
    written = definitions().get(name)
    if written is None:
        return None
    report, scope = Report(), Scope()
    file = parse(written.source, report)
    assert file is not None, f"{written.source.name}: {report.diagnostics}"
    declare_definitions(file, scope, report)
    found: BlockEntity = scope.routers[name]
    return found
