"""Attention as text in the language against torch's kernel by hand, and a window against full attention.

    python benchmarks/attention.py [--quick] [--tokens 128 1024] [--long 2048] [--rounds 9]

Width 512, 8 heads, causal, one example. "block" is the time of the block `attention`, "text" that of scores, softmax
and sum in a spec, each divided by that of a torch module by hand, linear maps included. "window" is that of a window of
128 keys divided by that of all keys up to the query's own, both written as text without linear maps; "layer" is the
same with them. "forward" is inference, "both" a forward and backward pass. The contenders take turns; the least time
counts.
Goals: block and text at most 1.02, window at most 0.5.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from options import parse_options
from torch import nn

import modgraph
from modgraph.backends.torch import Model

BLOCK = "model prelude() { input x: float[time, 512] y = x -> attention(8, causal=true) output y }"
TEXT = """model text() {
  input x: float[time, 512]
  q, k, v = x -> linear(3 * 512) -> split(3)
  q = q -> unmerge([8, 64], into=["head", ""])
  k = k -> unmerge([8, 64], into=["head", ""]) -> rename(time="key")
  v = v -> unmerge([8, 64], into=["head", ""]) -> rename(time="key")
  back = (q -> positions(axis="time")) - (k -> positions(axis="key"))
  gates = (((q, k) -> contract) / 8, BAND) -> masked_softmax(axis="key")
  y = (v by gates over key) -> merge -> linear(512)
  output y
}"""
UNMAPPED = TEXT.replace("x -> linear(3 * 512) -> split(3)", "(x, x, x) -> concat -> split(3)").replace(
    " -> linear(512)", ""
)
CAUSAL, WINDOW = "back >= 0", "(back >= 0) * (back < 128)"


class ByHand(nn.Module):
    """What an engineer writes: one map, torch's kernel, one map."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(512, 3 * 512), nn.Linear(512, 512)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (each.unflatten(-1, (8, 64)).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        found: torch.Tensor = self.out(y.transpose(1, 2).flatten(-2))
        return found


def build(text: str) -> Model:
    return modgraph.loads(text).build(seed=0)


def step(model: nn.Module, x: torch.Tensor, both: bool) -> Callable[[], None]:
    """Return a function that runs one pass, or a forward and a backward pass."""

    def run() -> None:
        with torch.set_grad_enabled(both):
            y = model(x)
        if both:
            y.sum().backward()

    return run


def ratio(first: Callable[[], None], second: Callable[[], None], rounds: int) -> float:
    """The least time of the first, divided by that of the second."""
    least = [float("inf")] * 2
    for number in range(rounds + 2):
        for at, each in enumerate((first, second)):
            start = time.perf_counter()
            each()
            if number > 1:
                least[at] = min(least[at], time.perf_counter() - start)
    return least[0] / least[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, nargs="+", default=[128, 1024])
    parser.add_argument("--long", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=9)
    options = parse_options(parser, tokens=[32], long=256, rounds=1)
    hand, block, text, layer = (
        ByHand(),
        build(BLOCK),
        build(TEXT.replace("BAND", CAUSAL)),
        build(TEXT.replace("BAND", WINDOW)),
    )
    every, window = (build(UNMAPPED.replace("BAND", band)) for band in (CAUSAL, WINDOW))
    print(f"{'tokens':>6} {'what':>7} {'forward':>8} {'both':>8}")
    runs = [(what, count, each, hand) for count in options.tokens for what, each in (("block", block), ("text", text))]
    runs += [("window", options.long, window, every), ("layer", options.long, layer, text)]
    for what, count, first, second in runs:
        x = torch.randn(1, count, 512, requires_grad=True)
        found = [ratio(step(first, x, both), step(second, x, both), options.rounds) for both in (False, True)]
        print(f"{count:>6} {what:>7} {found[0]:>8.2f} {found[1]:>8.2f}")


if __name__ == "__main__":
    main()
