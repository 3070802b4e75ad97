"""Words of the field that are no op here, and how what they mean is written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Idiom:
    """`code` is a statement about a value x: float[…, 8] that binds y."""

    words: tuple[str, ...]
    code: str


IDIOMS = (
    Idiom(
        ("rnn", "recurrent"),
        "scan x as v with h: float[8] { h = (h, v) -> concat -> linear(8) -> tanh yield h } as y",
    ),
    Idiom(("mlp", "ffn", "feed_forward"), "y = x -> linear(32) -> gelu -> linear(8)"),
    Idiom(("transformer", "encoder_layer"), "y = x + (x -> layer_norm -> attention(2))"),
    Idiom(("rope", "rotary", "rotary_embedding"), "y = x -> attention(2, rotary=10000.0)"),
    Idiom(("relative_position_bias", "position_bias", "alibi"), "y = x -> attention(2, relative=32)"),
    Idiom(("swiglu", "geglu", "glu"), "y = ((x -> linear(32) -> silu) * (x -> linear(32))) -> linear(8)"),
    Idiom(("residual", "skip", "shortcut"), "y = x + (x -> linear(8))"),
    Idiom(("moe", "mixture_of_experts", "experts"), "pool expert[4] = linear(8) y = x -> expert -> mean"),
    Idiom(("l1", "mae", "l1_loss"), "y = x -> abs -> mean(axis=-1)"),
    Idiom(("matmul", "mm", "matrix_multiply"), "w = (x, x) -> contract(axis=-1) y = x -> linear(4)"),
    Idiom(("reshape", "view"), "y = x -> unmerge([2, 4]) -> merge(-3, -2)"),
    Idiom(("squeeze",), "y = x -> new_axis -> merge(-3, -2)"),
    Idiom(("argmax", "one_hot_argmax"), "y = (x -> sort_order(axis=-1, descending=true)) == 0"),
    Idiom(("square", "squared"), "y = x ** 2"),
    Idiom(("reciprocal", "inverse"), "y = 1 / x"),
    Idiom(("rsqrt",), "y = 1 / (x -> sqrt)"),
    Idiom(("logsumexp",), "y = x -> exp -> sum -> log"),
    Idiom(("var", "variance"), "y = (x - (x -> mean)) ** 2 -> mean"),
    Idiom(("std", "standard_deviation"), "y = (x - (x -> mean)) ** 2 -> mean -> sqrt"),
    Idiom(("logical_and", "both"), "y = (x > 0) * (x < 1)"),
    Idiom(("logical_or", "either"), "y = (x < 0, x > 1) -> maximum"),
    Idiom(("logical_not",), "y = 1 - (x > 0)"),
)
