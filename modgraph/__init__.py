"""modgraph: a declarative compiler for modular neural networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modgraph.version import VERSION

if TYPE_CHECKING:
    from modgraph.backends.onnx import export
    from modgraph.backends.torch import Model
    from modgraph.diagnostics import ModgraphError
    from modgraph.program import Program, load, loads
    from modgraph.training.stored_run import load_run

__version__ = VERSION
__all__ = ["Model", "ModgraphError", "Program", "export", "load", "load_run", "loads"]

_HOMES = {
    "Model": "modgraph.backends.torch",
    "ModgraphError": "modgraph.diagnostics",
    "Program": "modgraph.program",
    "load": "modgraph.program",
    "loads": "modgraph.program",
    "export": "modgraph.backends.onnx",
    "load_run": "modgraph.training.stored_run",
}


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used: `import modgraph` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'modgraph' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """The public names, those that are not imported yet too, so that completion knows them."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
