"""Registers declarations by name: ops, routers, data sets, …, each kind in its own registry.

Installed packages add declarations. A package offers an entry point of the group `modgraph` that names a module, and
importing the module registers its classes. Extensions are loaded only for a name that is not registered yet.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from modgraph.declare.errors import BrokenExtension, describe_failure
from modgraph.declare.setting import Configurable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "modgraph"

D = TypeVar("D", bound="Registered")


class Registry(dict[str, type[D]], Generic[D]):
    """The declarations of one kind (`op`, `data set`) by name."""

    all: ClassVar[dict[str, Registry[Any]]] = {}

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        Registry.all[kind] = self

    def find(self, name: str) -> type[D] | None:
        """Find the declaration of a name, in installed packages too."""
        if name not in self:
            load_extensions()
        return self.get(name)

    def every(self) -> list[type[D]]:
        """List all declarations by name, those of installed packages included."""
        load_extensions()
        return [self[name] for name in sorted(self)]


class Registered(Configurable):
    """Registers each subclass that has a `name`: `class Scale(Op, name="scale")`.

    Raises `TypeError` for a duplicate name or a missing docstring.
    """

    registry: ClassVar[Registry[Any]]
    name: ClassVar[str]

    def __init_subclass__(cls, name: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        assert "name" not in vars(cls), (
            f'the name of {cls.__name__} is an argument of the class statement: name="{cls.name}"'
        )
        if not name:
            return
        if name in cls.registry:
            raise TypeError(f'two declarations of kind {cls.registry.kind} are called "{name}"')
        if not sys.flags.optimize and not vars(cls).get("__doc__"):
            raise TypeError(f'{cls.registry.kind} "{name}" needs a docstring: it is what `explain` prints')
        cls.name, cls.registry[name] = name, cls


@cache
def load_extensions() -> tuple[BrokenExtension, ...]:
    """Import the extensions of installed packages once; return the faults of those that fail."""
    from importlib.metadata import entry_points  # at use: this import takes as long as reading a spec

    entries = sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value))
    return tuple(fault for entry in entries if (fault := _import_extension(entry)) is not None)


def _import_extension(entry: EntryPoint) -> BrokenExtension | None:
    """Import one package's declarations; return its fault if that fails."""
    known = {id(declared) for registry in Registry.all.values() for declared in registry.values()}
    module = entry.module.partition(".")[0]
    try:
        entry.load()
    except (Exception, SystemExit) as error:  # foreign code can fail in any way
        for registry in Registry.all.values():  # unregister what it declared before it failed
            for name, declared in [*registry.items()]:
                if id(declared) not in known and declared.__module__.partition(".")[0] == module:
                    del registry[name]
        package = entry.dist.name if entry.dist is not None else module
        return BrokenExtension(package=package, entry=entry.value, problem=describe_failure(error))
    return None
