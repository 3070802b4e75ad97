"""A trace as arrays in an .npz file."""

from __future__ import annotations

import io
import zipfile
from typing import Any

from modgraph_runtime.arrays import put_arrays
from numpy.typing import NDArray

from modgraph.trace.trace import Trace


def arrays_of(trace: Trace) -> dict[str, NDArray[Any]]:
    """Records as `<route>.<record>` [rounds, examples, ..., tokens, modules], inputs and targets under their names."""
    found: dict[str, NDArray[Any]] = dict(trace.arrays.values)
    for route in trace.routes:
        found |= {f"{route.name}.{record}": array for record, array in route.records.items()}
    return found


def npz_of(trace: Trace) -> bytes:
    """The content of an .npz file with the arrays of a trace."""
    buffer = io.BytesIO()
    put_arrays(buffer, arrays_of(trace), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
