"""A bundle: an ONNX model with a manifest that says what goes in and what comes out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

Array = NDArray[Any]

MANIFEST_KEY = "modgraph"
FORMAT = 1
LENGTH = "length"


class BundleError(Exception):
    """A file is no bundle, or arrays do not fit the model; the message says what to do."""


@dataclass(frozen=True)
class Port:
    """An input or output: what each example holds. `shape` has numbers, and names for axes of any length.

    `size` is the vocabulary of tokens or the number of classes; `classes` names them where the model knows names.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    size: int | None = None
    classes: tuple[str, ...] = ()

    @property
    def kind(self) -> type[Any]:
        return np.float32 if self.dtype == "float" else np.int64

    def __str__(self) -> str:
        axes = [*self.shape] if self.size is None else [*self.shape, self.size]
        return f"{self.dtype}[{', '.join(map(str, axes))}]" if axes else self.dtype


class Bundle:
    """An exported model, loaded. `threads` bounds those it computes with (0: as many as there are cores)."""

    def __init__(self, path: str | Path, threads: int = 0) -> None:
        """Raises `BundleError` if the file cannot be read or is no bundle."""
        self.path = Path(path)
        if not self.path.is_file():
            raise BundleError(f'there is no file "{path}"')
        options = ort.SessionOptions()
        options.use_deterministic_compute = True
        options.intra_op_num_threads = threads
        options.log_severity_level = 4
        try:
            self._session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime raises its own errors, which share no base class but this
            reason = str(error).splitlines()[0]
            raise BundleError(f'"{path}" is no ONNX model that can be loaded: {reason}') from error
        self.manifest = self._manifest()
        self.inputs = self._ports("inputs", self._session.get_inputs())
        self.outputs = self._ports("outputs", self._session.get_outputs())
        self.routing = self._ports("routing", self._session.get_outputs())

    def _manifest(self) -> dict[str, Any]:
        text = self._session.get_modelmeta().custom_metadata_map.get(MANIFEST_KEY)
        if text is None:
            raise BundleError(f'"{self.path}" is an ONNX model, but not a bundle: it has no manifest')
        try:
            manifest = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BundleError(f'the manifest of "{self.path}" is damaged') from error
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise BundleError(f'the manifest of "{self.path}" is of a format that this version does not read')
        return manifest

    def _ports(self, group: str, real: Any) -> dict[str, Port]:
        """What the manifest says of inputs or outputs, held against the model."""
        names = {each.name for each in real}
        try:
            classes = self.manifest.get("classes", {})
            ports = {}
            for entry in self.manifest[group]:
                name, known = str(entry["name"]), tuple(map(str, classes.get(entry["name"], ())))
                ports[name] = Port(name, entry["dtype"], tuple(entry["shape"]), entry.get("size"), known)
        except (KeyError, TypeError, AttributeError) as error:
            raise BundleError(f'the manifest of "{self.path}" is damaged: {group} cannot be read') from error
        if missing := sorted(set(ports) - names):
            raise BundleError(f'the manifest of "{self.path}" names {group} that the model lacks: {missing}')
        return ports

    def run(self, inputs: Mapping[str, Any], routing: bool = False, chunk: int = 1024) -> dict[str, Array]:
        """Outputs by name, examples first; with `routing`, the routers' records too.

        Large batches are computed `chunk` examples at a time. Raises `BundleError` where arrays do not fit.
        """
        arrays = self._arrays(inputs)
        wanted = [*self.outputs, *(self.routing if routing else ())]
        examples = len(next(iter(arrays.values())))
        parts = [
            self._session.run(wanted, {name: array[at : at + chunk] for name, array in arrays.items()})
            for at in range(0, examples, chunk)
        ]
        return {name: np.concatenate(columns) for name, columns in zip(wanted, zip(*parts, strict=True), strict=True)}

    def predict(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """The class of the largest value of each output: its name where the model has names, or else its number."""
        results = {}
        for name, values in self.run(inputs).items():
            best = values.argmax(-1)
            classes = self.outputs[name].classes
            results[name] = np.array(classes)[best] if len(classes) == values.shape[-1] else best
        return results

    def _arrays(self, given: Mapping[str, Any]) -> dict[str, Array]:
        """The inputs as the model takes them, lengths that are not given filled in."""
        unknown = sorted(set(given) - set(self.inputs))
        if unknown:
            raise BundleError(f'the model has no input "{unknown[0]}"; its inputs: {self._listed()}')
        arrays: dict[str, Array] = {}
        lengths: dict[int | str, int] = {}
        for name, port in self.inputs.items():
            if port.dtype == LENGTH:
                continue
            if name not in given:
                raise BundleError(f'the input "{name}" is missing; the inputs: {self._listed()}')
            arrays[name] = _checked(np.asarray(given[name]), port, lengths)
        for name, port in self.inputs.items():
            if port.dtype == LENGTH:
                arrays[name] = self._length(name, given, lengths)
        return arrays

    def _length(self, name: str, given: Mapping[str, Any], lengths: dict[int | str, int]) -> Array:
        longest = lengths[name.removesuffix("_length")]
        if name not in given:
            return np.full(lengths["examples"], longest, np.int64)
        length = np.asarray(given[name])
        if length.shape != (lengths["examples"],) or length.dtype.kind not in "iu":
            raise BundleError(f'"{name}" must be one whole number for each of {lengths["examples"]} examples')
        if length.size and (length.min() < 0 or length.max() > longest):
            raise BundleError(f'"{name}" must lie between 0 and {longest}')
        return length.astype(np.int64)

    def _listed(self) -> str:
        return ", ".join(f"{name} {port}" for name, port in self.inputs.items() if port.dtype != LENGTH)


def _checked(array: Array, port: Port, lengths: dict[int | str, int]) -> Array:
    """One input, cast to what the model takes. Raises `BundleError`."""
    wanted = ("examples", *port.shape)
    if array.ndim != len(wanted):
        raise BundleError(f'"{port.name}" has the shape {array.shape}; {port} needs {len(wanted)} axes, examples first')
    for axis, length in zip(wanted, array.shape, strict=True):
        if isinstance(axis, int) and axis != length:
            raise BundleError(f'"{port.name}" has the shape {array.shape}; {port} needs {axis} where it has {length}')
        if isinstance(axis, str) and lengths.setdefault(axis, length) != length:
            raise BundleError(f'"{port.name}" has {length} {axis}, but another input has {lengths[axis]}')
    if len(array) == 0:
        raise BundleError(f'"{port.name}" has no examples')
    if array.dtype.kind not in ("fiub" if port.dtype == "float" else "iu"):
        raise BundleError(f'"{port.name}" holds {array.dtype}; {port} needs {np.dtype(port.kind).name}')
    if port.dtype == "float" and not np.isfinite(array).all():
        raise BundleError(f'"{port.name}" holds values that are infinite or not a number')
    if port.size is not None and array.size and (array.min() < 0 or array.max() >= port.size):
        raise BundleError(f'"{port.name}" holds values outside of 0 to {port.size - 1}')
    return np.ascontiguousarray(array, dtype=port.kind)
