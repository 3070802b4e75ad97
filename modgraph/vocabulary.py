"""Looks up ops and routers by name: this package's, and those of packages that offer some by entry point.

A package extends the language with an entry point of the group `modgraph` that names a module; importing it declares
its ops and routers.
"""

from __future__ import annotations

from functools import cache
from importlib import metadata

from modgraph.declare import Declaration
from modgraph.ops import Op
from modgraph.routers import Router


def find_op(name: str) -> type[Op] | None:
    if name not in Op.registry:
        load_extensions()
    return Op.registry.get(name)


def find_router(name: str) -> type[Router] | None:
    if name not in Router.registry:
        load_extensions()
    return Router.registry.get(name)


def find_all(name: str) -> list[type[Declaration]]:
    """What a name can mean: an op, a router, or both, since each has its own place in a spec."""
    found: tuple[type[Declaration] | None, ...] = (find_op(name), find_router(name))
    return [each for each in found if each is not None]


@cache
def load_extensions() -> None:
    """Import what installed packages add. Only called for a name that is not our own."""
    for entry_point in metadata.entry_points(group="modgraph"):
        entry_point.load()
