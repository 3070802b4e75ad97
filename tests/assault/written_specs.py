"""Every spec of the project, small where it is large: those in `specs`, in its zoo, and of papers."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import modgraph
from tests.backends.torch.test_source import SPECS

PAPERS = sorted(path.stem for path in Path("tests/papers").glob("*.mod"))
ALL = [*(f"specs/{name}" for name in SPECS), *(f"tests/papers/{name}" for name in PAPERS)]


@cache
def spec_of(name: str) -> modgraph.Program:
    """A spec by its path without the ending."""
    return modgraph.load(f"{name}.mod", **SPECS.get(name.removeprefix("specs/"), {}))
