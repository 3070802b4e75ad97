"""MT-RMN written down once more, in numpy, step by step for one sequence, without sharing a line with the program.

u are the vectors that the sub-networks of a layer make, α the scores of a policy, ζ the gates made of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Key = tuple[object, ...]  # of a gate: (layer, step, sender, receiver), or (task, layer, step, sender)
ENCODER, DECODER = "rmn.mt_rmn.encoder.routed_layers", "rmn.mt_rmn.decoder"


@dataclass
class MTRMN:
    """The encoder and the decoders of some tasks.

    With `noise`, two numbers for each gate, gates are those of training. With `at`, the same model elsewhere, it
    is the ζ of there and by how much the softmax has changed: the straight-through estimator is the gradient of that.
    """

    weights: Mapping[str, Array]
    cells: int
    layers: list[int]
    tasks: list[str]
    recursive: bool = False
    noise: Mapping[Key, Array] = field(default_factory=dict)
    temperature: float = 1.0
    at: MTRMN | None = None
    soft: dict[Key, float] = field(default_factory=dict)
    hard: dict[Key, float] = field(default_factory=dict)

    def __call__(
        self, series: Array, extra_inputs: Mapping[str, Array] | None = None
    ) -> tuple[dict[str, Array], Array, Array]:
        """Of a series [T, D], and perhaps the representation [T, R] of each task: the vectors [T, V] of each task, and
        how many gates are open, [T] of the encoder and of all decoders."""
        states = [(np.zeros(0), np.zeros(0))] * self.cells
        found: dict[str, list[Array]] = {task: [] for task in self.tasks}
        within, read = np.zeros(len(series)), np.zeros(len(series))
        for t, x in enumerate(series):
            states = [self._lstm(f"{ENCODER}.cell.{i}.lstm", x, *state) for i, state in enumerate(states)]
            u, made = [h for h, _ in states], []
            for layer, size in enumerate(self.layers):
                at = ENCODER if self.recursive else f"{ENCODER}.layer.{layer}"
                after = []
                for j in range(size):
                    gates = [self._gate(f"{at}.policy.{j}", each, (layer, t, i, j)) for i, each in enumerate(u)]
                    within[t] += sum(gates)
                    after.append(self._mlp(f"{at}.encoder.{j}.mlp", mean_of(u, gates)))
                u = after
                made.append(u)
            for task in self.tasks:
                at, extra = f"{DECODER}.{task}.task_decoder", np.zeros(0)
                if extra_inputs is not None:
                    extra = self.weights[f"{at}.transform.linear.weight"] @ extra_inputs[task][t]
                parts = []
                for layer, below in enumerate(made):
                    seen = [np.concatenate([each, extra]) for each in below]
                    gates = [self._gate(f"{at}.policy.0", each, (task, layer, t, i)) for i, each in enumerate(seen)]
                    read[t] += sum(gates)
                    parts.append(self._mlp(f"{at}.layer.{layer}.decoder.0.mlp", mean_of(below, gates)))
                found[task].append(np.concatenate(parts))
        return {task: np.stack(rows) for task, rows in found.items()}, within, read

    def _gate(self, policy: str, x: Array, key: Key) -> float:
        hidden = self._mlp(f"{policy}.policy_network.mlp", x)
        alpha = self._mapped(f"{policy}.policy_network.scores", hidden)
        off, on = alpha + self.noise[key] if self.noise else alpha
        self.hard[key] = float(on > off)
        self.soft[key] = float(sigmoid((on - off) / self.temperature))
        if self.at is None:
            return self.hard[key]
        return self.at.hard[key] + self.soft[key] - self.at.soft[key]

    def _mlp(self, name: str, x: Array) -> Array:
        for i in range(2):
            x = np.maximum(self._mapped(f"{name}.linear.{i}", x), 0)
        return x

    def _mapped(self, name: str, x: Array) -> Array:
        return self.weights[f"{name}.weight"] @ x + self.weights[f"{name}.bias"]

    def _lstm(self, name: str, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        each = {key: self.weights[f"{name}.{key}"] for key in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
        h, c = (np.zeros(each["weight_hh"].shape[1]) if not len(state) else state for state in (h, c))
        i, f, g, o = np.split(each["weight_ih"] @ x + each["bias_ih"] + each["weight_hh"] @ h + each["bias_hh"], 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c


def mean_of(vectors: list[Array], gates: list[float]) -> Array:
    """Σ ζ u / Σ ζ; where no gate is open, Σ ζ u, which is zero."""
    total = sum((gate * vector for gate, vector in zip(gates, vectors, strict=True)), np.zeros_like(vectors[0]))
    return total / (sum(gates) if sum(gates) > 0.5 else 1.0)


def sigmoid(x: Array) -> Array:
    return (1 + np.tanh(x / 2)) / 2
