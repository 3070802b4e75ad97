"""Examples of a run's test data with what the bundle makes of each in Python: to try, and to hold the page against."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
from modgraph_runtime import Bundle
from numpy.typing import NDArray

from modgraph.data import Arrays

MOST, LOOKED_AT = 10, 512  # examples
MOST_UNNAMED = 5  # of data without one class for each
LARGEST = 2_000_000  # bytes of all examples, of which there is always one


def examples_of(bundle: Bundle, arrays: Arrays, split: str) -> dict[str, Any]:
    """Some examples of a split, of classes as unlike as they come; each computed alone, its padding cut off."""
    found, left = list[dict[str, Any]](), LARGEST
    most = MOST if _targets(bundle, arrays) else MOST_UNNAMED
    for row in islice(_unlike(bundle, arrays), most):
        rows = arrays.read(np.array([row]))
        inputs = {name: rows[name] for name in bundle.inputs}
        values = bundle.run(inputs, routing=True)
        left -= sum(array.nbytes for array in (*inputs.values(), *values.values()))
        if found and left < 0:
            break
        found.append({"truth": _truth(bundle, rows), "inputs": _packed(inputs), "outputs": _packed(values)})
    return {"split": split, "examples": found}


def _unlike(bundle: Bundle, arrays: Arrays) -> Iterator[int]:
    """The places of examples: one of each class of the first target that has one for an example, the others behind."""
    labels = next((arrays.values[target] for target in _targets(bundle, arrays)), None)
    count = min(LOOKED_AT, len(arrays))
    first = range(count) if labels is None else np.unique(labels[:count], return_index=True)[1].tolist()
    yield from first
    yield from sorted({*range(count)} - {*first})


def _targets(bundle: Bundle, arrays: Arrays) -> list[str]:
    """The targets that have one class for each example."""
    told = [port.target for port in bundle.outputs.values() if port.target is not None]
    return [target for target in told if target in arrays.values and arrays.values[target].ndim == 1]


def _truth(bundle: Bundle, rows: Mapping[str, NDArray[Any]]) -> dict[str, str]:
    """The true class of an example, by the output that is to tell it."""
    found = {}
    for name, port in bundle.outputs.items():
        if port.target is not None and port.target in rows and rows[port.target].ndim == 1:
            label = int(rows[port.target][0])
            found[name] = port.classes[label] if 0 <= label < len(port.classes) else str(label)
    return found


def _packed(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Arrays in JSON: shapes, and numbers as base64 of their bytes, little end first."""
    found = {}
    for name, array in arrays.items():
        kind = "float32" if array.dtype.kind == "f" else "int32"  # ids and lengths, all of them small
        data = np.ascontiguousarray(array, np.dtype(kind).newbyteorder("<"))
        found[name] = {"dtype": kind, "shape": list(array.shape), "data": base64.b64encode(data.tobytes()).decode()}
    return found
