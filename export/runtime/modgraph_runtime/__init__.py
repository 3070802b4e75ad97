"""Runs models that modgraph has exported: numpy and onnxruntime, nothing else."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modgraph_runtime.bundle import Bundle
    from modgraph_runtime.ports import BundleError, Port

__all__ = ["Bundle", "BundleError", "Port"]


def __getattr__(name: str) -> Any:
    """Import numpy and onnxruntime at use, since `modgraph_runtime.files` needs neither."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("modgraph_runtime." + ("bundle" if name == "Bundle" else "ports")), name)


def __dir__() -> list[str]:
    """All names, also those not imported yet, for completion."""
    return sorted({*globals(), *__all__})
