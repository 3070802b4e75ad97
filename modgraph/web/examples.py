"""Examples of a page: what goes into a model and comes out, so that a visitor has something to begin with."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import numpy as np
from modgraph_runtime import Bundle
from numpy.typing import NDArray

from modgraph.data import Arrays

MOST, LOOKED_AT = 10, 512  # number of examples
MOST_UNNAMED = 5  # number without one class per example
LARGEST = 2_000_000  # bytes of all examples; there is always one
TOLERANCE = 1e-4  # of outputs that another machine computes


def examples_of(bundle: Bundle, arrays: Arrays, split: str) -> dict[str, Any]:
    """Some examples of a split, computed one by one without padding.

    The first are one for each class of the first target that has one class for an example.
    """
    known = (arrays.values.get(str(port.target)) for port in bundle.outputs.values() if port.target is not None)
    labels = next((array for array in known if array is not None and array.ndim == 1), None)
    count = min(LOOKED_AT, len(arrays))
    first = range(count) if labels is None else np.unique(labels[:count], return_index=True)[1].tolist()
    order = [*first, *sorted({*range(count)} - {*first})]
    found, left = list[dict[str, Any]](), LARGEST
    for row in order[: MOST_UNNAMED if labels is None else MOST]:
        rows = arrays.read(np.array([row]))
        inputs = {name: rows[name] for name in bundle.inputs}
        values = bundle.run(inputs, routing=True)
        left -= sum(array.nbytes for array in (*inputs.values(), *values.values()))
        if found and left < 0:
            break
        found.append({"truth": _truth(bundle, rows), "inputs": _pack(inputs), "outputs": _pack(values)})
    return {"split": split, "examples": found}


def _truth(bundle: Bundle, rows: Mapping[str, NDArray[Any]]) -> dict[str, str]:
    """The true classes of an example, by output."""
    found = {}
    for name, port in bundle.outputs.items():
        if port.target is not None and port.target in rows and rows[port.target].ndim == 1:
            label = int(rows[port.target][0])
            found[name] = port.classes[label] if 0 <= label < len(port.classes) else str(label)
    return found


def _pack(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Arrays in JSON: shapes, and little-endian numbers in base64."""
    found = {}
    for name, array in arrays.items():
        kind = "float32" if array.dtype.kind == "f" else "int32"  # ids and lengths, all of them small
        data = np.ascontiguousarray(array, np.dtype(kind).newbyteorder("<"))
        found[name] = {"dtype": kind, "shape": list(array.shape), "data": base64.b64encode(data.tobytes()).decode()}
    return found


def find_fault(bundle: Bundle, examples: Mapping[str, Any]) -> str:
    """What is wrong with examples that were read from a file; empty if the bundle computes the first as they say.
    Raises `BundleError` where it does not fit."""
    every = examples.get("examples")
    if not isinstance(examples.get("split"), str) or not isinstance(every, list):
        return "they are no list"
    try:
        read = [(_unpack(each["inputs"]), _unpack(each["outputs"]), dict(each["truth"])) for each in every]
    except (KeyError, TypeError, ValueError, binascii.Error):
        return "one is damaged"
    for inputs, outputs, _ in read[:1]:
        values = bundle.run(inputs, routing=True)
        if values.keys() != outputs.keys() or not all(_are_close(outputs[name], values[name]) for name in values):
            return "the model computes others"
    return ""


def _are_close(found: NDArray[Any], expected: NDArray[Any]) -> bool:
    return found.shape == expected.shape and np.allclose(found, expected, TOLERANCE, TOLERANCE, equal_nan=True)


def _unpack(packed: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Arrays from JSON. Raises `KeyError`, `TypeError` and `ValueError`."""
    found = {}
    for name, each in packed.items():
        kind = {"float32": np.float32, "int32": np.int32}[each["dtype"]]
        data = np.frombuffer(base64.b64decode(each["data"], validate=True), np.dtype(kind).newbyteorder("<"))
        found[name] = data.reshape(each["shape"])
    return found
