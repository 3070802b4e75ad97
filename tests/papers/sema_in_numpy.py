"""SEMA written down once more, in numpy, image by image, without sharing a line with the program.

N tokens (the class token first), D their width, K adapters of a block.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import erf, sqrt
from statistics import mean, stdev

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Weights = Mapping[str, Array]


@dataclass
class Sema:
    """A model of `depth` blocks; `records` has for each descriptor of each block the errors that it made last."""

    weights: Weights
    adapters: list[int]
    expands: list[int]
    heads: int
    patch: int
    variant: str = "bottleneck"
    gating: str = "soft"
    per: str = "image"
    normed: bool = False
    keeps: int = 500
    records: dict[tuple[int, int], deque[float]] = field(default_factory=dict)

    def __call__(self, image: Array) -> tuple[Array, dict[int, list[float]]]:
        """The logits of an image [C, H, W], and the error of each descriptor, by block."""
        errors: dict[int, list[float]] = {}
        x = self._tokens(image)
        for i, count in enumerate(self.adapters):
            x = x + self._attended(f"blocks.{i}.attn.attention", self._normed(f"blocks.{i}.norm1.layer_norm", x))
            after = self._normed(f"blocks.{i}.norm2.layer_norm", x)
            read = after if self.normed else x
            if i in self.expands:
                errors[i] = [self._error(f"blocks.{i}.descriptor.{k}", read.mean(0)) for k in range(count)]
            shares = self._shares(i, read, count)
            mlp = self._mapped(f"blocks.{i}.mlp.fc2", gelu(self._mapped(f"blocks.{i}.mlp.fc1", after)))
            made = [self._adapted(f"blocks.{i}.adapter.{k}.{self.variant}", read) for k in range(count)]
            x = x + mlp + sum(shares[:, [k]] * made[k] for k in range(count))
        return self._mapped("head", self._normed("norm.layer_norm", x)[0]), errors

    def learn(self, errors: dict[int, list[float]]) -> None:
        """Put the errors of an image on record."""
        for i, each in errors.items():
            for k, error in enumerate(each):
                self.records.setdefault((i, k), deque(maxlen=self.keeps)).append(error)

    def novelty(self, i: int, k: int, error: float) -> float:
        """How many standard deviations an error lies from the mean of the record."""
        record = self.records.get((i, k), deque())
        return abs(error - mean(record)) / stdev(record) if len(record) > 2 else 0.0

    def _mapped(self, name: str, x: Array) -> Array:
        bias = self.weights.get(f"{name}.bias")
        product = x @ self.weights[f"{name}.weight"].T
        return product if bias is None else product + bias

    def _normed(self, name: str, x: Array) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        unit = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6)
        return unit * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def _tokens(self, image: Array) -> Array:
        size, kernel = image.shape[1] // self.patch, self.weights["patches.patch_embed.weight"]
        found = [self.weights["patches.class_token.weight"]]
        for row, column in np.ndindex(size, size):
            place = (slice(at * self.patch, (at + 1) * self.patch) for at in (row, column))
            found.append(
                (kernel * image[(slice(None), *place)]).sum((1, 2, 3)) + self.weights["patches.patch_embed.bias"]
            )
        return np.stack(found) + self.weights["patches.position.weight"]

    def _attended(self, name: str, x: Array) -> Array:
        q, k, v = np.split(self._mapped(f"{name}.qkv", x), 3, axis=-1)
        width, found = x.shape[1] // self.heads, []
        for head in range(self.heads):
            own = slice(head * width, (head + 1) * width)
            found.append(softmax(q[:, own] @ k[:, own].T / sqrt(width)) @ v[:, own])
        return self._mapped(f"{name}.out", np.concatenate(found, -1))

    def _shares(self, i: int, read: Array, count: int) -> Array:
        """What each adapter counts for each token: [N, K]."""
        if self.gating in ("average", "random"):  # outside of training
            return np.full((len(read), count), 1 / count)
        read = np.broadcast_to(read.mean(0), read.shape) if self.per == "image" else read
        shares = softmax(self._mapped(f"blocks.{i}.mixture.gates.gating.column", read))
        return shares if self.gating == "soft" else shares * (shares == shares.max(-1, keepdims=True))

    def _adapted(self, name: str, x: Array) -> Array:
        match self.variant:
            case "bottleneck":
                found = np.maximum(self._mapped(f"{name}.down", x), 0) @ self.weights[f"{name}.up.weight"].T
                return found + self.weights[f"{name}.bias"]
            case "lora":
                return self._mapped(f"{name}.up", self._mapped(f"{name}.down", x))
        down = gelu(self._mapped(f"{name}.down", x))
        rows = round(sqrt(len(x) - 1))
        token = self._convolved(f"{name}.local.conv", down[:1].reshape(1, 1, -1)).reshape(1, -1)
        patches = self._convolved(f"{name}.local.conv", down[1:].reshape(rows, rows, -1)).reshape(rows * rows, -1)
        up = gelu(np.concatenate([token, patches])) @ self.weights[f"{name}.up.weight"].T
        return up + self.weights[f"{name}.bias"]

    def _convolved(self, name: str, x: Array) -> Array:
        """A 3 × 3 convolution of [rows, columns, C] that keeps the size, zeros around."""
        kernel, around = self.weights[f"{name}.weight"], np.pad(x, ((1, 1), (1, 1), (0, 0)))
        found = np.empty((*x.shape[:2], len(kernel)))
        for row, column in np.ndindex(*x.shape[:2]):
            found[row, column] = np.einsum("ocij,ijc->o", kernel, around[row : row + 3, column : column + 3])
        return found + self.weights[f"{name}.bias"]

    def _error(self, name: str, seen: Array) -> float:
        again = self._mapped(f"{name}.autoencoder.decoder", self._mapped(f"{name}.autoencoder.encoder", seen))
        return float(((again - seen) ** 2).mean())


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gelu(x: Array) -> Array:
    return x * (1 + np.vectorize(erf)(x / sqrt(2))) / 2
