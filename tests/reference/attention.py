"""Attention, one head and one token at a time."""

from __future__ import annotations

import math

import numpy as np

from tests.reference.along_axis import softmax_of
from tests.reference.call import Call, op
from tests.reference.layers import mapped, rms_normalised
from tests.reference.values import Array

FARTHEST = 128


@op("attention")
def attention(call: Call, x: Array, memory: Array | None = None, mask: Array | None = None) -> Array:
    """softmax(Q Kᵀ / √head_width) V of each head, for each index of the outer axes by itself."""
    found = np.zeros(x.shape)
    for outer in np.ndindex(x.shape[:-2]):
        seen = None if mask is None else mask[outer] != 0
        found[outer] = _attended(call, x[outer], x[outer] if memory is None else memory[outer], seen)
    return found


def _attended(call: Call, x: Array, memory: Array, mask: Array | None) -> Array:
    """x [N, D] looks at memory [M, E], where a mask [N, M] or [M] is true."""
    queries, keys, values = _heads(call, x, memory)
    seen = np.ones((len(x), len(memory)), np.bool_) if mask is None else np.broadcast_to(mask, (len(x), len(memory)))
    if call.setting("causal", False):
        seen = seen & np.tri(len(x), len(memory), dtype=np.bool_)
    heads, width = queries.shape[1:]
    of_kv = heads // keys.shape[1]  # so many heads of queries share one of keys
    joined = np.zeros((len(x), heads, width))
    for n in range(len(x)):
        places = np.flatnonzero(seen[n])
        for head in range(heads):
            scores = keys[places, head // of_kv] @ queries[n, head] / math.sqrt(width)
            if call.setting("relative") is not None:
                scores = scores + np.array([_bias(call, n, int(m), head) for m in places])
            joined[n, head] = softmax_of(scores) @ values[places, head // of_kv]
    bias = call.weight("out.bias") if call.setting("out_bias", True) else None
    return mapped(joined.reshape(len(x), heads * width), call.weight("out.weight"), bias)


def _heads(call: Call, x: Array, memory: Array) -> tuple[Array, Array, Array]:
    """Queries [N, heads, width], keys and values [M, heads of theirs, width]."""
    heads, kv_heads = call.settings["heads"], call.setting("kv_heads")
    width = call.setting("head_width") or x.shape[-1] // heads
    if kv_heads is None:
        weights = np.split(call.weight("qkv.weight"), 3)
        biases = np.split(call.weight("qkv.bias"), 3) if call.setting("bias", True) else [None] * 3
    else:
        weights = [call.weight(f"{name}.weight") for name in "qkv"]
        biases = [call.weight(f"{name}.bias") for name in "qkv"] if call.setting("bias", True) else [None] * 3
    q, k, v = (mapped(*each) for each in zip((x, memory, memory), weights, biases, strict=True))
    q, k, v = (each.reshape(len(each), each.shape[1] // width, width) for each in (q, k, v))
    if call.setting("qk_norm", False):
        q, k = rms_normalised(q, call.weight("q_norm.weight")), rms_normalised(k, call.weight("k_norm.weight"))
    base = call.setting("rotary")
    return (q, k, v) if base is None else (_turned(q, base), _turned(k, base), v)


def _turned(x: Array, base: float) -> Array:
    """Numbers i and i + half of a head as a pair, turned by place · base^(−i / half)."""
    half = x.shape[-1] // 2
    angles = np.arange(len(x))[:, None, None] * base ** (-np.arange(half) / half)
    first, second = x[..., :half], x[..., half:]
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def _bias(call: Call, n: int, m: int, head: int) -> float:
    """The learned bias for the bucket of the distance from a query's place to a key's."""
    buckets = call.settings["relative"]
    if call.setting("causal", False):
        return float(call.weight("relative.weight")[_bucket(n - m, buckets), head])
    half = buckets // 2
    return float(call.weight("relative.weight")[_bucket(abs(n - m), half) + (half if m > n else 0), head])


def _bucket(distance: int, buckets: int) -> int:
    """Half of the buckets a distance each, the others up to `FARTHEST` by its logarithm."""
    single = buckets // 2
    if distance < single:
        return distance
    share = math.log(distance / single) / math.log(FARTHEST / single)
    return min(buckets - 1, single + int(share * (buckets - single)))
