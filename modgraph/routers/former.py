"""Routers of stored graphs that are text in the language now."""

from __future__ import annotations

from typing import Any, ClassVar

from modgraph.declare import Registry, TorchModule, setting
from modgraph.routers.defined import Defined
from modgraph.routers.router import Router


class Former(Router):
    """A router that an earlier version computed in Python: its name and its settings, until its text is put in."""

    name = "former"
    registry: ClassVar[Registry[Router]] = Defined.registry
    module = TorchModule("modgraph.nn.Defined")
    reference = "modgraph.nn.Defined"

    definition: str = setting(doc="what it is called")
    given: tuple[Any, ...] = setting((), doc="its settings by name, as pairs")
