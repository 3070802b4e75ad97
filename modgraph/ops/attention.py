"""Attention of tokens to tokens."""

from __future__ import annotations

from dataclasses import replace

from modgraph.declare import ONES, ZEROS, Operand, Weight, normal, own_module, setting, tokens, uniform
from modgraph.declare.indexing import Indexing, Inner, Place, Reading, Use, everywhere, move_axes, place_at
from modgraph.ops.op import Op
from modgraph.types import Axes, Misfit, TensorType, infer_axis

MEMORY_HELP = "what tokens attend to has the axes number, width; their outer axes are those of the tokens"
KV_HEADS = "number of heads of keys and values; must divide heads; queries, keys and values then have a projection each"
RELATIVE = "number of buckets of relative positions, often 32; no bias if not given"
NAMED = ("kv_heads", "bias", "out_bias", "causal", "rotary", "relative", "qk_norm")
MASK_HELP = "a mask has the axes of the tokens and of those that they attend to, [N, M], or the latter alone, [M]"


class Attention(Op, name="attention", synonyms="self_attention cross_attention multihead_attention mha"):
    """Multi-head attention of tokens to themselves or to a memory: softmax(Q Kᵀ / √head_width) V. Padding is masked.

    `(x, memory) -> attention(…)` attends to other tokens. A third operand is a mask with the axes [N, M] or [M]: no
    token attends where it is zero. A query without any visible token gives zeros.

    Positions count from 0, along N and along M. `causal` hides later positions. `rotary` rotates pairs of numbers, i
    with i + head_width / 2 as in Llama (Su et al., 2021). `relative` adds a learned bias for each head and bucket of
    distances (T5, Raffel et al., 2020). Half of the buckets hold one distance each; the others grow logarithmically up
    to a distance of 128. Without `causal`, half of all buckets are for later positions.
    """

    torch_arguments = "embed_dim= num_heads=heads"
    nondifferentiable = ("mask",)
    example = "input x: float[5, 6] y = x -> attention(2) output y"
    operands = (
        tokens("x"),
        Operand("memory", "... M E", help=MEMORY_HELP, optional=True),
        Operand("mask", "... N M", help=MASK_HELP, optional=True),
    )
    results = ("... N D",)
    weights = (
        Weight("qkv.weight", "threefold D", uniform("D"), when="fused"),
        Weight("qkv.bias", "threefold", ZEROS, when="fused bias"),
        Weight("q.weight", "inner D", uniform("D"), when="kv_heads"),
        Weight("q.bias", "inner", ZEROS, when="kv_heads bias"),
        Weight("k.weight", "kv_inner E", uniform("E"), when="kv_heads"),
        Weight("k.bias", "kv_inner", ZEROS, when="kv_heads bias"),
        Weight("v.weight", "kv_inner E", uniform("E"), when="kv_heads"),
        Weight("v.bias", "kv_inner", ZEROS, when="kv_heads bias"),
        Weight("q_norm.weight", "head", ONES, when="qk_norm"),
        Weight("k_norm.weight", "head", ONES, when="qk_norm"),
        Weight("relative.weight", "relative heads", normal(0.02), when="relative"),
        Weight("out.weight", "D inner", uniform("inner")),
        Weight("out.bias", "D", ZEROS, when="out_bias"),
    )
    module = own_module("D", "heads", "E", "head", **{name: name for name in NAMED})
    masks = "N M"
    masks_each = True

    heads: int = setting(min=1, doc="number of heads; must divide the width, unless head_width is given")
    bias: bool = setting(True, doc="add biases in the projections of queries, keys and values")
    causal: bool = setting(False, doc="a token attends to no later one")
    out_bias: bool = setting(True, doc="add a bias in the output projection")
    kv_heads: int | None = setting(None, min=1, doc=KV_HEADS)
    head_width: int | None = setting(None, min=1, doc="width of a head; width / heads if not given")
    rotary: float | None = setting(None, min=1, doc="base of rotary positions, often 10000; no rotation if not given")
    relative: int | None = setting(None, min=4, max=128, doc=RELATIVE)
    qk_norm: bool = setting(False, doc="apply rms_norm to each head's queries and keys")

    @property
    def fused(self) -> bool:
        """Whether one projection computes queries, keys and values."""
        return self.kv_heads is None

    @infer_axis
    def head(self, D: int) -> int:
        return self.head_width or D // self.heads

    @infer_axis
    def inner(self, D: int) -> int:
        return self.heads * self.head(D)

    @infer_axis
    def kv_inner(self, D: int) -> int:
        return (self.kv_heads or self.heads) * self.head(D)

    @infer_axis
    def threefold(self, D: int) -> int:
        return 3 * self.inner(D)

    def match_operands(self, found: tuple[TensorType, ...]) -> tuple[Operand, ...]:
        operands = super().match_operands(found)
        if len(found) == 3 and len(found[2].shape) == len(found[0].shape) - 1:
            return (*operands[:2], replace(operands[2], axes="... M"))
        return operands

    def check(self, axes: Axes) -> None:
        axes.bound.setdefault("M", axes["N"])
        axes.bound.setdefault("E", axes["D"])
        width, memory_width, head = axes.resolve("D"), axes.resolve("E"), axes.resolve("head")
        if self.head_width is None and width % self.heads:
            raise Misfit(f"{self.heads} heads do not divide a width of {axes['D']}", "choose heads that do")
        if self.fused and memory_width != width:
            reason = f"one map for queries, keys and values takes one width, not {width} and {memory_width}"
            advice = f"give keys and values maps of their own: attention({self.heads}, kv_heads={self.heads})"
            raise Misfit(reason, advice)
        if self.heads % (self.kv_heads or 1):
            raise Misfit(f"{self.kv_heads} heads of keys do not divide {self.heads} heads", "choose kv_heads that do")
        if self.rotary is not None and head % 2:
            raise Misfit(f"rotary positions turn pairs, and a head has {head} numbers", "make head_width even")
        if self.relative is not None and self.relative % 2 and not self.causal:
            raise Misfit("half of the buckets are for what is later", f"make it even: relative={self.relative + 1}")

    def indexing(self, use: Use) -> Indexing:
        """A query at its own place, keys and values wherever the mask is not zero, up to that place if causal."""
        shapes, memory = use.shapes, min(1, len(use.shapes) - 1)
        keys = place_at(Inner("key", shapes[memory][-2].size, place_at(-2, None, 0) if self.causal else None))

        def read(number: int, tokens: Place) -> Reading:
            changed = {-2: tokens, -1: everywhere(shapes[number][-1])}
            return Reading(number, move_axes(shapes[number], lambda axis: axis, changed))

        readings = [read(0, place_at(-2)), read(memory, keys)]
        if len(shapes) == 3:
            outer = tuple(map(place_at, range(-len(shapes[0]), -2)))
            queries = (place_at(-2),) if len(shapes[2]) == len(shapes[0]) else ()
            readings.append(Reading(2, (*outer, *queries, keys), guards=True))
        return (tuple(readings),)

    def macs(self, N: int, M: int, D: int, E: int) -> int:
        inner = self.inner(D)
        return 2 * N * D * inner + 2 * M * E * self.kv_inner(D) + 2 * N * M * inner
