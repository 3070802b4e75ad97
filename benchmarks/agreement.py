"""Compares compiled agreement routing with plain einsums for Algorithm 1: forward and backward, as ratios within one
run.

    python benchmarks/agreement.py [--quick] [--rounds 15]

B 64 examples, N 64 tokens of width 64, M modules of width D 384, T 4 rounds. Goal: at most 0.5 of the plain einsums.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from options import parse_options
from torch import Tensor

import modgraph

B, N, WIDTH, D, T = 64, 64, 64, 384, 4

SPEC = """
model route(modules=2) {
  input  tokens: float[64, 64]
  pool   specialist[modules] = modulated_linear(384)
  router agree = agreement(4)
  y = tokens -> specialist by agree
  output y
}
"""


def plain_einsum(weights: dict[str, Tensor], tokens: Tensor, modules: int) -> Tensor:
    """Compute Algorithm 1 with every message kept: u [B, N, M, D], then einsums for agreements and sums."""
    shared = "specialist.shared.modulated_linear"
    W, b, Wc = (weights[f"{shared}.{name}"] for name in ("weight", "bias", "code_weight"))
    codes = torch.stack([weights[f"specialist.{j}.modulated_linear.code"] for j in range(modules)])
    gain = torch.nn.functional.layer_norm(codes @ Wc.T, (WIDTH,))
    u = torch.einsum("bnd,md,vd->bnmv", tokens, gain, W) + b
    t = torch.nn.functional.normalize(tokens @ weights["agree.weight"].T, dim=-1)
    v, alpha = u.mean(1), torch.zeros(*tokens.shape[:2], modules)
    for _ in range(T):
        alpha = alpha + torch.einsum("bnv,bmv->bnm", t, torch.nn.functional.normalize(v, dim=-1))
        v = torch.einsum("bnm,bnmv->bmv", alpha.softmax(-1), u)
    return v


def step(model: Any, function: Callable[[], Tensor]) -> float:
    """Measure the seconds of one forward and backward pass."""
    model.zero_grad()
    start = time.perf_counter()
    function().square().sum().backward()
    return time.perf_counter() - start


def compare(modules: int, rounds: int) -> None:
    program = modgraph.loads(SPEC, modules=modules)
    tokens = torch.randn(B, N, WIDTH)
    variants: dict[str, tuple[Any, Callable[[], Tensor]]] = {}
    for name, lowering in (("compiled", None), ("message_passing", "message_passing")):
        model = program.build(lowering=lowering)
        variants[name] = (model, lambda model=model: model(tokens))  # type: ignore[misc]
    plain = program.build()
    weights = dict(plain.named_parameters())
    variants["plain einsum"] = (plain, lambda: plain_einsum(weights, tokens, modules))
    torch.testing.assert_close(variants["compiled"][1](), variants["plain einsum"][1](), atol=1e-4, rtol=1e-4)

    times: dict[str, list[float]] = {name: [] for name in variants}
    for round_ in range(rounds + 2):
        for name, (model, function) in variants.items():
            seconds = step(model, function)
            if round_ >= 2:
                times[name].append(seconds)
    floor = times["plain einsum"]
    for name, seconds_all in times.items():
        ratio = statistics.median(a / b for a, b in zip(seconds_all, floor, strict=True))
        print(f"M {modules}: {name:16} {1000 * statistics.median(seconds_all):8.1f} ms   {ratio:5.2f} of plain einsum")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--modules", type=int, nargs="+", default=[2, 8])
    options = parse_options(parser, rounds=1, modules=[2])
    torch.manual_seed(0)
    for modules in options.modules:
        compare(modules, options.rounds)


if __name__ == "__main__":
    main()
