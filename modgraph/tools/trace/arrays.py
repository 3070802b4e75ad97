"""A trace as arrays in an .npz file."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.tools.trace.trace import Trace


def arrays_of(trace: Trace) -> dict[str, NDArray[Any]]:
    """Records as `<route>.<record>` [rounds, examples, ..., tokens, modules], inputs and targets under their names."""
    found: dict[str, NDArray[Any]] = dict(trace.arrays.values)
    for route in trace.routes:
        found |= {f"{route.name}.{record}": array for record, array in route.records.items()}
    return found


def npz_of(trace: Trace) -> bytes:
    """The content of an .npz file with the arrays of a trace."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays_of(trace))  # type: ignore[arg-type]
    return buffer.getvalue()
