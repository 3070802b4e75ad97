"""Looks up ops and routers by name: this package's, and those of packages that extend it."""

from __future__ import annotations

from modgraph.declare import Declaration
from modgraph.ops import Op
from modgraph.routers import Router

find_op = Op.registry.find
find_router = Router.registry.find


def find_all(name: str) -> list[type[Declaration]]:
    """What a name can mean: an op, a router, or both, since each has its own place in a spec."""
    found: tuple[type[Declaration] | None, ...] = (find_op(name), find_router(name))
    return [each for each in found if each is not None]
