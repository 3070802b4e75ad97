"""A bundle: an ONNX model with a manifest that describes its inputs and outputs."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors

from modgraph_runtime.files import explain_error, open_file
from modgraph_runtime.generation import Generator, Sampler
from modgraph_runtime.integrity import MANIFEST_KEY, find_damage, find_damage_in, find_manifest_damage, other_format
from modgraph_runtime.model_file import compute_stamp, model_of
from modgraph_runtime.ports import BATCH, Array, BundleError, Inputs, Port, check_axes
from modgraph_runtime.steps import AGAIN, Cache, Step, StepFacts

MADE_BY = "check the path, or write one: modgraph export RUN -o model.onnx"

# onnxruntime's errors have no base class of their own
NAMES = "EPFail Fail InvalidArgument InvalidGraph InvalidProtobuf NotImplemented RuntimeException".split()
ORT_ERRORS = (RuntimeError, ValueError, *(getattr(ort_errors, name) for name in NAMES))
CLOSED = {  # ONNX Runtime would also accept its own format, and weights in other files; a bundle is one whole ONNX file
    "session.load_model_format": "ONNX",
    "session.model_external_initializers_file_folder_path": os.devnull,  # a path below a file
}
KINDS = {"float": "tensor(float)", **dict.fromkeys(("token", "class", "length", "edge"), "tensor(int64)")}


class Bundle:
    """An exported model, loaded. `threads` limits its threads; 0 uses all cores.

    `inputs`, `outputs` and `routing` (the records of routers) are ports by name; `manifest` is the whole description.
    `targets` and `left_out` are names of arrays that data for the model may have and the bundle ignores: targets of its
    training, and inputs of outputs that the bundle leaves out. `stepwise` says how a bundle takes tokens one after
    another; it is None for bundles that do not.

    The bytes of the file are checked against the digest at their end before ONNX Runtime sees them. A `<stem>.json`
    next to the file must be its manifest, unless it is JSON of another kind. `check=False` skips both checks.
    """

    def __init__(self, path: str | Path, threads: int = 0, check: bool = True) -> None:
        """Raises `BundleError` if the file cannot be read, is no bundle, or is not as it was exported."""
        self.path = Path(path)
        self._warned = set[str]()
        self._session = _session(self.path, threads, check)
        self.manifest = self._read_manifest()
        manifest_path = self.path.with_suffix(".json")
        if check and manifest_path.exists():
            with _reading(manifest_path) as file:
                damage = find_manifest_damage(file.read(), self.manifest)
            if damage:
                raise BundleError(
                    f'"{manifest_path}", the manifest next to the bundle, {damage.reason}', damage.way_out
                )
        try:
            classes, axes = self.manifest.get("classes", {}), self.manifest.get("axes", {})
            self.inputs, self.outputs, self.routing = (
                {port.name: port for port in (Port.from_entry(entry, classes) for entry in self.manifest[group])}
                for group in ("inputs", "outputs", "routing")
            )
            longest = {axis: known["longest"] for axis, known in axes.items() if "longest" in known}
            self.stepwise = StepFacts.from_manifest(self.manifest)
            caches, after = ({}, {}) if self.stepwise is None else (self.stepwise.inputs, self.stepwise.outputs)
            check_axes(
                [*self.inputs.values(), *after.values()], [*self.outputs.values(), *self.routing.values()], longest
            )
            self._inputs = Inputs(self.inputs, longest)
            self.targets = frozenset(map(str, self.manifest.get("targets", ())))
            self.left_out = frozenset(
                (*_names_left_out(self.manifest, "inputs"), *_names_left_out(self.manifest, "targets"))
            )
            self.outputs_left_out = _names_left_out(self.manifest, "outputs")
            self._hold({**self.inputs, **caches}, self._session.get_inputs())
            self._hold({**self.outputs, **self.routing, **after}, self._session.get_outputs())
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise BundleError(f'the manifest of "{path}" is damaged: {error}') from error

    def __repr__(self) -> str:
        outputs = ", ".join(f"{name} {port}" for name, port in self.outputs.items())
        return f"<Bundle {self.path}: {self._inputs} → {outputs}>"

    def _read_manifest(self) -> dict[str, Any]:
        try:
            text = self._session.get_modelmeta().custom_metadata_map.get(MANIFEST_KEY)
            if text is None:
                raise BundleError(f'"{self.path}" is an ONNX model, but not a bundle: it has no manifest')
            found: dict[str, Any] = json.loads(text, parse_constant=int)  # "NaN" is not JSON
        except (ValueError, RecursionError) as error:
            raise BundleError(f'the manifest of "{self.path}" is damaged: it is not JSON') from error
        if damage := other_format(found):
            raise BundleError(f'the manifest of "{self.path}" {damage.reason}', damage.way_out)
        return found

    def _hold(self, ports: Mapping[str, Port], tensors: Any) -> None:
        """Compare the manifest with the tensors of the model. Raises `ValueError`."""
        tensors_by_name = {tensor.name: tensor for tensor in tensors}
        if {port.tensor for port in ports.values()} != set(tensors_by_name):
            raise ValueError(f"it names {sorted(ports)}, but the model has {sorted(tensors_by_name)}")
        for name, port in ports.items():
            tensor = tensors_by_name[port.tensor]
            fits = len(tensor.shape) == 1 + len(port.shape) and tensor.type == KINDS[port.dtype]
            axes = zip(tensor.shape[1:], port.shape, strict=False)
            if not fits or any(type(a) is type(b) is int and a != b for a, b in axes):
                raise ValueError(f'it says that "{name}" is {port}, unlike the model')

    def run(self, inputs: Mapping[str, Any], routing: bool = False, chunk: int = 1024) -> dict[str, Array]:
        """Compute outputs by name, examples first; with `routing`, the records of routers too, if it has them.

        Large batches run in pieces of `chunk` examples. A stepwise bundle takes whole sequences, from their first token
        on. Raises `BundleError` if arrays do not fit. Warns once of images in bytes where the model takes light from 0
        to 1.
        """
        if not isinstance(chunk, int | np.integer) or chunk < 1:
            raise BundleError(f"chunk must be a whole number from 1, not {chunk}")
        arrays, lengths = self._inputs.fit(inputs)
        self._warn_of_bytes(inputs)
        ports = {**self.outputs, **(self.routing if routing else {})}
        if lengths[BATCH] == 0:
            return {name: _empty(port, lengths) for name, port in ports.items()}
        feed = {self.inputs[name].tensor: array for name, array in arrays.items()}
        if self.stepwise is not None:
            feed |= self.stepwise.feed(self.stepwise.begin(lengths[BATCH]), self._count_new(arrays, lengths))
        wanted = [port.tensor for port in ports.values()]
        parts = [
            self._compute(wanted, {name: array[at : at + chunk] for name, array in feed.items()})
            for at in range(0, lengths[BATCH], chunk)
        ]
        return {name: np.concatenate(columns) for name, columns in zip(ports, zip(*parts, strict=True), strict=True)}

    def _compute(self, wanted: list[str], feed: Mapping[str, Array]) -> list[Array]:
        try:
            found: list[Array] = self._session.run(wanted, dict(feed))
        except ORT_ERRORS as error:
            raise BundleError(f'"{self.path}" cannot compute this: {_first_line(error)}') from error
        return found

    # ------------------------------------------------------------ token after token

    def step(
        self,
        tokens: Any,
        cache: Cache | None = None,
        lengths: Sequence[int] | None = None,
        routing: bool = False,
        others: Mapping[str, Any] | None = None,
    ) -> Step:
        """Compute the outputs of new tokens [B, n, …], which follow those of a cache: the step of your own sampler.

        Without a cache they are the first. Without `lengths` every example has all n. `others` are further inputs by
        name. Raises `BundleError` for a bundle that is not stepwise, and for arrays and caches that do not fit.
        """
        facts = self.stepwise
        if facts is None:
            raise BundleError(f'"{self.path}" takes no token after another', AGAIN)
        own = self._length_of_tokens()
        named = {} if lengths is None or own is None else {own: lengths}
        arrays, found_lengths = self._inputs.fit({facts.tokens: tokens, **(others or {}), **named})
        new = self._count_new(arrays, found_lengths) if lengths is None or own is not None else [*lengths]
        if not new or min(new) < 1:
            raise BundleError("each example of a step has at least one new token", "leave out those that have ended")
        cache = facts.begin(len(new)) if cache is None else cache
        feed = {self.inputs[name].tensor: array for name, array in arrays.items()} | facts.feed(cache, new)
        wanted = [port.tensor for group in (self.outputs, self.routing if routing else {}) for port in group.values()]
        wanted += [port.tensor for port in facts.outputs.values()]
        found = dict(zip(wanted, self._compute(wanted, feed), strict=True))
        outputs, records = (
            {name: found[port.tensor] for name, port in group.items()}
            for group in (self.outputs, self.routing if routing else {})
        )
        return Step(outputs, records, facts.follow(cache, new, found))

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        tokens: int = 64,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        stop: Collection[int] = (),
    ) -> list[list[int]]:
        """Continue prompts, lists of ids that may differ in length, by up to so many tokens: the new ids of each.

        A sequence ends before a `stop` token. Temperature 0 takes the most likely token, as `Model.generate` does;
        other samples follow the same probabilities, by numpy's noise. Raises `BundleError` for a bundle that cannot
        continue and prompts that do not fit, and `ValueError` for settings out of range.
        """
        sampler, generator = Sampler(temperature, top_k, top_p, seed), Generator(self)
        generator.check(prompts, tokens, stop, routing=False)
        found = [list[int]() for _ in prompts]
        for each in generator.run(prompts, tokens, sampler, stop):
            for row, token in zip(found, each.tokens, strict=True):
                row += [] if token is None or token in stop else [token]
        return found

    def _length_of_tokens(self) -> str | None:
        """The input with the number of new tokens of each example, if the model reads it."""
        assert self.stepwise is not None
        return next((name for name, port in self.inputs.items() if port.along == self.stepwise.axis), None)

    def _count_new(self, arrays: Mapping[str, Array], lengths: Mapping[str, int]) -> list[int]:
        """The number of new tokens of each example."""
        assert self.stepwise is not None
        own = self._length_of_tokens()
        return [lengths[self.stepwise.axis]] * lengths[BATCH] if own is None else arrays[own].tolist()

    def _warn_of_bytes(self, inputs: Mapping[str, Any]) -> None:
        described = self.manifest.get("preprocessing")
        for name, how in described.items() if isinstance(described, Mapping) else ():
            value: Any = inputs.get(name)
            is_light = isinstance(how, Mapping) and "channels" in how and name not in self._warned
            if is_light and isinstance(value, np.ndarray) and value.dtype == np.uint8 and (value > 1).any():
                self._warned.add(name)
                problem = f'"{name}" holds bytes up to {value.max()}, but the model takes light from 0 to 1'
                also = ", then subtract the mean and divide by the deviation of its preprocessing"
                also = also if {"mean", "deviation"} & how.keys() else ""
                warnings.warn(f"{problem}; divide it by 255{also}", stacklevel=3)

    def predict(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """Compute outputs by name. An output over classes gives the most likely class, by name if it has one.

        Raises `BundleError` if arrays do not fit.
        """
        return {name: self.classify(name, values) for name, values in self.run(inputs).items()}

    def classify(self, output: str, values: Array) -> Array:
        """The most likely classes of an output's values; an output without classes gives the values."""
        port = self.outputs[output]
        if port.target is None:
            return values
        best: Array = values.argmax(-1)
        return np.array(port.classes)[best] if len(port.classes) == values.shape[-1] else best


@contextmanager
def _reading(path: Path) -> Iterator[IO[bytes]]:
    try:
        with open_file(path) as file:
            yield file
    except FileNotFoundError as error:
        raise BundleError(f'cannot read "{path}": no such file', MADE_BY) from error
    except OSError as error:
        raise BundleError(f'cannot read "{path}": {explain_error(error)}', MADE_BY) from error


def _session(path: Path, threads: int, check: bool) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.use_deterministic_compute = True
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    for key, value in CLOSED.items():
        options.add_session_config_entry(key, value)
    with _reading(path) as file:
        before, model = compute_stamp(file), model_of(file)
        if check and (damage := find_damage(model) if isinstance(model, bytes) else find_damage_in(file)):
            raise BundleError(f'"{path}" {damage.reason}', damage.way_out)
        try:
            session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"], enable_fallback=0)
        except ORT_ERRORS as error:
            raise BundleError(f'"{path}" is no ONNX model that can be loaded: {_first_line(error)}') from error
        if isinstance(model, str) and compute_stamp(file) != before:
            raise BundleError(f'"{path}" changed while it was opened', "open it again when it is complete")
    session._model_bytes = session._model_path = None  # else it warns of a missing fall-back
    return session


def _first_line(error: BaseException) -> str:
    """Return onnxruntime's message without its codes."""
    return (str(error).splitlines() or [type(error).__name__])[0].rpartition(" : ")[2]


def _names_left_out(manifest: Mapping[str, Any], kind: str) -> tuple[str, ...]:
    names = manifest.get("left_out", {}).get(kind, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("its list of left-out names is invalid")
    return tuple(names)


def _empty(port: Port, lengths: Mapping[str, int]) -> Array:
    shape = (axis if isinstance(axis, int) else lengths[axis] for axis in port.shape)
    try:
        return np.zeros((0, *shape), port.kind)
    except ValueError as error:
        raise BundleError(f'"{port.name}" has a shape that no array can have') from error
