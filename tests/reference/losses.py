"""Losses of an example, and which examples have labels at all."""

from __future__ import annotations

import math

import numpy as np

from tests.reference.along_axis import log_softmax_of
from tests.reference.call import Call, op
from tests.reference.values import Array, Unsupported


def _reduced(call: Call, losses: list[float]) -> Array:
    """The mean, or the sum, over an example's positions that count; of none, zero."""
    total = sum(losses)
    return np.asarray(total if call.setting("reduce", "mean") == "sum" else total / max(1, len(losses)))


@op("cross_entropy")
def cross_entropy(call: Call, logits: Array, label: Array) -> Array:
    since, weights = call.setting("since", 0), call.setting("class_weights", [])
    losses = []
    for position in np.ndindex(label.shape):
        correct = int(label[position])
        if correct == call.setting("ignore") or (call.setting("missing", False) and correct < 0):
            continue
        if correct < since:
            raise Unsupported(f"a label that is {correct}, of classes from {since} on")
        share = log_softmax_of(logits[position][since:])[correct - since]
        losses.append(-(weights[correct] if weights else 1.0) * share)
    return _reduced(call, losses)


@op("gaussian")
def gaussian(call: Call, prediction: Array, target: Array) -> Array:
    """Each vector is a position; a number that may be missing and is has no likelihood."""
    variance, losses = call.settings["variance"], []
    for position in np.ndindex(prediction.shape[:-1]):
        off = target[position] - prediction[position]
        off = off[~np.isnan(target[position])] if call.setting("missing", False) else off
        if len(off) or not call.setting("missing", False):
            losses.append((off**2).sum() / (2 * variance) + len(off) * math.log(2 * math.pi * variance) / 2)
    return _reduced(call, losses)


@op("binary_cross_entropy")
def binary_cross_entropy(call: Call, logits: Array, label: Array) -> Array:
    """Each label is a Bernoulli variable with the logit log p / (1 − p)."""
    no, yes = call.setting("class_weights") or (1.0, 1.0)
    is_class, missing, losses = label.dtype.kind == "i", call.setting("missing", False), []
    for position in np.ndindex(label.shape):
        share, logit = label[position], logits[position]
        if missing and (share < 0 if is_class else np.isnan(share)):
            continue
        if not (is_class and share == call.setting("ignore")):
            losses.append(yes * share * np.logaddexp(0, -logit) + no * (1 - share) * np.logaddexp(0, logit))
    return _reduced(call, losses)


@op("mse", "l1", "huber")
def error(call: Call, prediction: Array, target: Array) -> Array:
    size = np.abs(prediction - target)
    delta = call.setting("delta", 1.0)
    squared = size**2
    losses = {"mse": squared, "l1": size, "huber": np.where(size < delta, squared / 2, delta * (size - delta / 2))}[
        call.op
    ]
    there = losses[~np.isnan(target)] if call.setting("missing", False) else losses
    return np.asarray(there.sum() / max(1, there.size))


@op("entropy")
def entropy(call: Call, logits: Array) -> Array:
    log_p = [log_softmax_of(logits[position]) for position in np.ndindex(logits.shape[:-1])]
    return _reduced(call, [-(np.exp(each) * each).sum() for each in log_p])


LABELS = dict.fromkeys(("gaussian", "mse", "l1", "huber"), "target")
LABELS |= dict.fromkeys(("cross_entropy", "binary_cross_entropy"), "label")


def has_label(settings: dict[str, object], target: Array) -> bool:
    """Whether an example has any label that such a comparison counts."""
    if target.dtype.kind == "i":
        return bool(((target >= 0) & (target != settings.get("ignore"))).any())
    return bool((~np.isnan(target)).any())
