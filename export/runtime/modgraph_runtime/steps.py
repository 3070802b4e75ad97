"""What a stepwise bundle keeps of earlier tokens: caches, which a step takes from the one before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from modgraph_runtime.ports import LENGTH, Array, BundleError, Port

AGAIN = "export it so: modgraph export RUN -o model.onnx --stepwise"


@dataclass(frozen=True)
class Cache:
    """What tokens have left behind: arrays by name, and the number of tokens of each example. `weights` are those of
    the bundle."""

    values: Mapping[str, Array] = field(repr=False)
    counts: tuple[int, ...]
    weights: str = field(default="", repr=False)

    def take(self, rows: Sequence[int]) -> Cache:
        """The caches of some examples, in this order; an example may occur several times."""
        values = {name: each[list(rows)] for name, each in self.values.items()}
        return Cache(values, tuple(self.counts[row] for row in rows), self.weights)


@dataclass(frozen=True)
class Step:
    """The outputs for new tokens by name, [B, tokens, …], records of routers if asked for, and the next cache."""

    outputs: Mapping[str, Array]
    routing: Mapping[str, Array] = field(repr=False)
    cache: Cache


@dataclass(frozen=True)
class StepFacts:
    """How a bundle takes tokens one after another.

    `tokens` names its input, along `axis`, the `place`-th from the last; `logits` the output for the next token, if it
    has one. `longest` bounds the number of tokens. `inputs` and `outputs` are ports of caches, and of lengths that
    follow from them; `choices` are records with the modules of each route. `windows` has the number of tokens that
    some caches keep at most, by a word for their axis.
    """

    tokens: str
    axis: str
    place: int
    logits: str | None
    longest: int | None
    inputs: Mapping[str, Port]
    outputs: Mapping[str, Port]
    choices: Mapping[str, str]
    windows: Mapping[str, int]
    weights: str

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> StepFacts | None:
        """Read a manifest; None for a bundle that takes no steps.

        Raises `LookupError`, `TypeError` and `ValueError` for damage.
        """
        if "stepwise" not in manifest:
            return None
        known = manifest["stepwise"]
        axis, lengths, windows = str(known["axis"]), known.get("lengths", {}), known.get("windows", {})
        if not all(type(most) is int and most > 0 for most in windows.values()):
            raise ValueError("a number of tokens that caches keep is no whole number")
        inputs, outputs = dict[str, Port](), dict[str, Port]()
        for entry in known["caches"]:
            port = inputs[entry["name"]] = Port.from_entry(entry, {})
            grown = [f"{axis}.total" if each == f"{axis}.past" else each for each in port.shape]
            outputs[port.name] = Port.from_entry({**entry, "tensor": entry["next"], "shape": grown}, {})
        for what, name in lengths.items():
            inputs[name] = Port.from_entry({"name": name, "dtype": LENGTH, "shape": [], "of": f"{axis}.{what}"}, {})
        axes = {
            each for port in inputs.values() for each in (*port.shape, port.along) if isinstance(each, str) and each
        }
        if unknown := axes - {*count_lengths(axis, windows, (), ())}:
            raise ValueError(f'nothing says how many tokens "{min(unknown)}" has')
        names = {entry["name"]: entry["shape"] for entry in manifest["inputs"]}
        if axis not in names[known["tokens"]]:
            raise ValueError("its tokens have no such axis")
        place, longest = known["place"], known.get("longest")
        if type(place) is not int or place >= 0 or not (longest is None or type(longest) is int):
            raise ValueError("the place of its tokens, or their number, is no whole number")
        return cls(
            str(known["tokens"]), axis, place, known.get("logits"), longest, inputs, outputs, known.get("choices", {}),
            windows, str(manifest.get("weights", "")),
        )  # fmt: skip

    @property
    def caches(self) -> Iterator[Port]:
        return (port for port in self.inputs.values() if port.dtype != LENGTH)

    def begin(self, examples: int) -> Cache:
        """The cache before the first token."""
        shapes = {port.name: (0 if isinstance(axis, str) else axis for axis in port.shape) for port in self.caches}
        values = {name: np.zeros((examples, *shape), self.inputs[name].kind) for name, shape in shapes.items()}
        return Cache(values, (0,) * examples, self.weights)

    def feed(self, cache: Cache, new: Sequence[int]) -> dict[str, Array]:
        """The tensors of a step that has so many new tokens of each example. Raises `BundleError`."""
        self._check(cache, new)
        known = count_lengths(self.axis, self.windows, cache.counts, new)
        ports = ((name, port.along) for name, port in self.inputs.items() if port.dtype == LENGTH)
        return {**cache.values, **{name: np.asarray(known[axis], np.int64) for name, axis in ports}}

    def follow(self, cache: Cache, new: Sequence[int], found: Mapping[str, Array]) -> Cache:
        """The cache after a step, whose tensors are given by name."""
        counts = tuple(int(count + more) for count, more in zip(cache.counts, new, strict=True))
        return Cache({name: found[port.tensor] for name, port in self.outputs.items()}, counts, self.weights)

    def _check(self, cache: Cache, new: Sequence[int]) -> None:
        if not isinstance(cache, Cache):
            raise BundleError(f"a cache is what a step left behind, not {type(cache).__name__}", "give step(…).cache")
        if cache.weights != self.weights:
            raise BundleError("the cache is of another bundle", "begin anew: step(tokens)")
        if len(cache.counts) != len(new):
            have = f"the cache has {len(cache.counts)} examples, and the tokens have {len(new)}"
            raise BundleError(have, "take those that go on: cache.take(rows)")
        shapes = {port.name: (len(new), *port.shape) for port in self.caches}
        known = count_lengths(self.axis, self.windows, cache.counts, new)
        least = {axis: max(counts, default=0) for axis, counts in known.items()}
        fits = cache.values.keys() == shapes.keys() and all(
            _fits(cache.values[name].shape, shape, least) for name, shape in shapes.items()
        )
        if not fits:
            raise BundleError("the arrays of the cache are not those that a step left behind", "give step(…).cache")
        most = max((count + more for count, more in zip(cache.counts, new, strict=True)), default=0)
        if self.longest is not None and most > self.longest:
            raise BundleError(f"{most} tokens are more than the {self.longest} positions of the model")


def _fits(found: tuple[int, ...], wanted: Sequence[int | str], least: Mapping[str, int]) -> bool:
    return len(found) == len(wanted) and all(
        length >= least[axis] if isinstance(axis, str) else length == axis
        for length, axis in zip(found, wanted, strict=True)
    )


def count_lengths(
    axis: str, windows: Mapping[str, int], past: Sequence[int], new: Sequence[int]
) -> dict[str, list[int]]:
    """Count the tokens of each example along the axes of new, earlier and all tokens, by axis.

    `windows` has the number of tokens that caches keep at most, by the word for it; other caches keep all.
    """
    found = {axis: [*new]}
    for name, most in {"": None, **windows}.items():
        kept = [count if most is None else min(count, most) for count in past]
        place = f"{axis}.{name}" if name else axis
        found |= {f"{place}.past": kept, f"{place}.total": [sum(each) for each in zip(kept, new, strict=True)]}
    return found
