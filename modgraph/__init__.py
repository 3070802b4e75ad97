"""modgraph: a declarative compiler for modular neural networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modgraph.version import VERSION

if TYPE_CHECKING:
    from modgraph.api.architectures import diff, visualize
    from modgraph.api.block import Block, block
    from modgraph.api.export import export
    from modgraph.api.migrate import migrate
    from modgraph.api.predict import predict
    from modgraph.api.run import Run, load_run
    from modgraph.api.runs import Runs, runs
    from modgraph.api.sweep import sweep
    from modgraph.api.train import train
    from modgraph.backends.torch import Computed, Model
    from modgraph.diagnostics import ModgraphError
    from modgraph.drawings import Drawing
    from modgraph.inspect.cost import Cost
    from modgraph.inspect.diff import Comparison
    from modgraph.prediction.predictions import Predictions
    from modgraph.program import Program, load, loads
    from modgraph.tables.facts import RunFacts
    from modgraph.tables.table import Table
    from modgraph.trace.trace import Trace
    from modgraph.training.callbacks import Callback, Epoch, Step

__version__ = VERSION
__all__ = [
    "Block",
    "Callback",
    "Comparison",
    "Computed",
    "Cost",
    "Drawing",
    "Epoch",
    "Model",
    "ModgraphError",
    "Predictions",
    "Program",
    "Run",
    "RunFacts",
    "Runs",
    "Step",
    "Table",
    "Trace",
    "block",
    "diff",
    "export",
    "load",
    "load_run",
    "loads",
    "migrate",
    "predict",
    "runs",
    "sweep",
    "train",
    "visualize",
]

_HOMES = {
    "Block": "modgraph.api.block",
    "Callback": "modgraph.training.callbacks",
    "Comparison": "modgraph.inspect.diff",
    "Computed": "modgraph.backends.torch",
    "Cost": "modgraph.inspect.cost",
    "Drawing": "modgraph.drawings",
    "Epoch": "modgraph.training.callbacks",
    "Model": "modgraph.backends.torch",
    "ModgraphError": "modgraph.diagnostics",
    "Predictions": "modgraph.prediction.predictions",
    "Program": "modgraph.program",
    "Run": "modgraph.api.run",
    "RunFacts": "modgraph.tables.facts",
    "Runs": "modgraph.api.runs",
    "Step": "modgraph.training.callbacks",
    "Table": "modgraph.tables.table",
    "Trace": "modgraph.trace.trace",
    "block": "modgraph.api.block",
    "diff": "modgraph.api.architectures",
    "export": "modgraph.api.export",
    "load": "modgraph.program",
    "load_run": "modgraph.api.run",
    "loads": "modgraph.program",
    "migrate": "modgraph.api.migrate",
    "predict": "modgraph.api.predict",
    "runs": "modgraph.api.runs",
    "sweep": "modgraph.api.sweep",
    "train": "modgraph.api.train",
    "visualize": "modgraph.api.architectures",
}


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used: `import modgraph` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'modgraph' has no attribute {name!r}{_suggest(name)}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def _suggest(name: str) -> str:
    """What a misspelt public name may mean. Modules of the package and names of Python are none."""
    from importlib.util import find_spec

    if name.startswith("_") or find_spec(f"modgraph.{name}") is not None:
        return ""
    from modgraph.diagnostics import did_you_mean

    return f": {did_you_mean(name, __all__, 'its names are {known}')}"


def __dir__() -> list[str]:
    """The public names, those that are not imported yet too, so that completion knows them."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
