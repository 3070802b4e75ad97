"""Recipes, data, the training engine, and the run directories it leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modgraph.training.stored_run import Run, load_run

__all__ = ["Run", "load_run"]


def __getattr__(name: str) -> Any:
    """What needs torch is imported when it is first used: a run's graph can be read without."""
    if name not in __all__:
        raise AttributeError(f"module 'modgraph.training' has no attribute {name!r}")
    from modgraph.training import stored_run

    return getattr(stored_run, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
