"""Two modular layers in numpy, and what EM and REINFORCE make of them (Kirsch et al., NeurIPS 2018)."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

Array = NDArray[np.float64]
Weights = dict[str, Array]

LAYERS, MODULES, SLOTS, VARIANCE = 2, 3, 2, 0.3

SPEC = f"""
model two(layers={LAYERS}, modules={MODULES}, slots={SLOTS}, decay=0.01) {{
  input  x: float[2]
  target y: float[2]
  z = x
  repeat layer[i] in 0..layers {{
    pool   expert[modules] = linear(2) -> tanh
    router controller = categorical(slots)
    z = z -> expert by controller
  }}
  output z
  loss gaussian(z, y, variance={VARIANCE})
  loss decay * entropy(z)
}}
"""


def forward(weights: Weights, x: Array, choices: Array) -> tuple[Array, Array]:
    """For x [2] and choices [L, K]: the prediction, and the log-probability of the choices."""
    log_p = 0.0
    for layer in range(LAYERS):
        name = f"layer.{layer}"
        logits = weights[f"{name}.controller.weight"] @ x + weights[f"{name}.controller.bias"]
        choice = choices[layer]
        log_p += log_softmax(logits, -1)[np.arange(SLOTS), choice].sum()
        parts = [
            np.tanh(weights[f"{name}.expert.{j}.linear.weight"] @ x + weights[f"{name}.expert.{j}.linear.bias"])
            for j in choice
        ]
        x = np.sum(parts, axis=0)
    return x, np.asarray(log_p)


def log_likelihood(prediction: Array, y: Array) -> float:
    """log N(y; prediction, variance·I)."""
    squares = ((prediction - y) ** 2).sum() / VARIANCE
    return float(-0.5 * (squares + len(y) * np.log(2 * np.pi * VARIANCE)))


def joint(weights: Weights, x: Array, y: Array, choices: Array) -> float:
    """log p(y|x, a) + log p(a|x)."""
    prediction, log_p = forward(weights, x, choices)
    return log_likelihood(prediction, y) + float(log_p)


def entropy(prediction: Array) -> float:
    log_p = log_softmax(prediction)
    return float(-(np.exp(log_p) * log_p).sum())


def em_objective(weights: Weights, xs: Array, ys: Array, choices: Array, decay: float) -> float:
    """−mean[log p(y|x, a*) + log p(a*|x)] and the other loss: choices [B, L, K]."""
    total = 0.0
    for x, y, a in zip(xs, ys, choices, strict=True):
        total += -joint(weights, x, y, a) + decay * entropy(forward(weights, x, a)[0])
    return total / len(xs)


def reinforce_objective(
    weights: Weights, xs: Array, ys: Array, choices: Array, advantages: Array, decay: float
) -> float:
    """−mean[log p(y|x, a) + advantage · log p(a|x)], the advantages held fast."""
    total = 0.0
    for x, y, a, advantage in zip(xs, ys, choices, advantages, strict=True):
        prediction, log_p = forward(weights, x, a)
        total += -log_likelihood(prediction, y) - advantage * float(log_p) + decay * entropy(prediction)
    return total / len(xs)


def every_choice() -> Array:
    """All there are, [M^(L·K), L, K]."""
    return np.array(list(product(range(MODULES), repeat=LAYERS * SLOTS))).reshape(-1, LAYERS, SLOTS)


def slope(function: object, weights: Weights, name: str, place: tuple[int, ...], step: float = 1e-6) -> float:
    """The derivative of a function of the weights by one number of one weight, from both sides."""
    values = []
    for sign in (1, -1):
        moved = {key: array.copy() for key, array in weights.items()}
        moved[name][place] += sign * step
        values.append(function(moved))  # type: ignore[operator]
    return float((values[0] - values[1]) / (2 * step))
