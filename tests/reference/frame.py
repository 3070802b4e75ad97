"""The context in which nodes are computed: weights, states, lengths of examples, forced random numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.reference.values import Array, Lengths


@dataclass(frozen=True)
class Model:
    """The context that all graphs of a model share. `states` holds states after a step, by the name of the weight."""

    weights: Mapping[str, Array]
    training: bool
    states: dict[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class Frame:
    """One run of a graph over some examples. Weights stand below one of `prefixes`: a module's own, then those that its
    pool shares."""

    model: Model
    lengths: tuple[Lengths, ...]
    forced: Mapping[str, Array] = field(default_factory=dict)
    prefixes: tuple[str, ...] = ("",)

    def weight(self, owner: str, name: str) -> Array:
        return self.model.weights[self._called(owner, name)]

    def read_state(self, owner: str, name: str) -> Array:
        """A state as it is now: a layer that is used twice moves it twice."""
        called = self._called(owner, name)
        return self.model.states.get(called, self.model.weights[called])

    def move_state(self, owner: str, name: str, value: Array) -> None:
        self.model.states[self._called(owner, name)] = value

    def _called(self, owner: str, name: str) -> str:
        names = [f"{prefix}{owner}.{name}" if name else f"{prefix}{owner}" for prefix in self.prefixes]
        return next(each for each in names if each in self.model.weights)

    def within(self, pool: str, module: int, examples: Sequence[int]) -> Frame:
        """That of a module of a pool, each message an example of its own; chance in it is not forced."""
        lengths = tuple(self.lengths[at] for at in examples)
        prefixes = tuple(f"{prefix}{pool}.{of}." for prefix in self.prefixes for of in (module, "shared"))
        return Frame(self.model, lengths, {}, prefixes)

    def step(self, time: int, examples: Sequence[int], names: Sequence[str]) -> Frame:
        """That of a step of a scan, of the examples that reach it; `names` are those of the scan's nodes."""
        forced = {name: self.forced[name][[*examples], time] for name in names if name in self.forced}
        return replace(self, lengths=tuple(self.lengths[at] for at in examples), forced=forced)
