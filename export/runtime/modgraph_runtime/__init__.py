"""Runs models that modgraph has exported: numpy and onnxruntime, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modgraph_runtime.bundle import Bundle
    from modgraph_runtime.ports import BundleError, Port

__all__ = ["Bundle", "BundleError", "Port"]


def __getattr__(name: str) -> Any:
    """Numpy and onnxruntime are imported at use: whoever needs `modgraph_runtime.files` alone does without."""
    if name == "Bundle":
        from modgraph_runtime.bundle import Bundle

        return Bundle
    if name in __all__:
        from modgraph_runtime import ports

        return getattr(ports, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """With the names that are not imported yet, so that completion knows them."""
    return sorted({*globals(), *__all__})
