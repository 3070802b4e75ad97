"""Mixtral in the language against transformers', with the same weights: ratios of times in one run.

    python benchmarks/mixtral.py [--quick] [--tokens 16 512 2048] [--rounds 9]

"block" is the mixture alone, forward and backward in training, down to the tokens: 8 experts of which 2 are chosen,
256 → 1024 → 256, as specs/zoo/mixtral.mod has it; "bare" is our time over that of the experts alone, on even slices and
without any routing. "decoder" is two layers of that with 8 heads, 2 of keys, 1,000 words,
and the loss of what comes next, the tokens as windows of at most 128; theirs with torch's fused attention, as ours.
Theirs has its experts in the fastest form on a processor, `grouped_mm`.
Needs transformers (`pip install modgraph-compiler[bench]`). Goal: the block at most 0.9 of theirs.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from options import parse_options
from torch import Tensor, nn

import modgraph
from modgraph.training.start.inherit import inherit_file
from modgraph.training.start.weight_map import read_map

ZOO = Path(__file__).parent.parent / "specs" / "zoo"
D, HIDDEN, EXPERTS, K, WORDS, WINDOW, WARM = 256, 1024, 8, 2, 1000, 128, 2
SIZES = {
    "vocab_size": WORDS,
    "hidden_size": D,
    "intermediate_size": HIDDEN,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": D // 8,
    "num_local_experts": EXPERTS,
    "num_experts_per_tok": K,
    "rms_norm_eps": 1e-5,
}
BLOCK = """
import swiglu from "parts/swiglu.mod"

model mixture(tokens=2048, dim=256, hidden=1024, experts=8, k=2) {
  input x: float[tokens, dim]
  pool expert[experts] = swiglu(dim, hidden)
  scores = x -> linear(expert, bias=false)
  y = x -> expert by ((scores, scores -> top_k(k)) -> masked_softmax)
  output y
}
"""


@dataclass(frozen=True)
class Contender:
    """A module, and one pass of it up to the differentiated value."""

    module: nn.Module
    step: Callable[[], Tensor]

    def seconds(self) -> float:
        """Measure the seconds of forward and backward."""
        self.module.zero_grad()
        start = time.perf_counter()
        self.step().backward()
        return time.perf_counter() - start


class SwiGLU(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up = (nn.Linear(D, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, D, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.down(nn.functional.silu(self.gate(x)) * self.up(x))
        return result


class Bare(nn.Module):
    """The experts without routing, each on an equal share of the work."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(SwiGLU() for _ in range(EXPERTS))

    def forward(self, x: Tensor) -> Tensor:
        shares = torch.cat([x[0]] * K).tensor_split(EXPERTS)
        return torch.cat([expert(share) for expert, share in zip(self.experts, shares, strict=True)])


def config() -> Any:
    from transformers import MixtralConfig

    rope = {"rope_type": "default", "rope_theta": 1e6}
    return MixtralConfig(
        **SIZES, rope_parameters=rope, experts_implementation="grouped_mm", attn_implementation="sdpa", use_cache=False
    )


def blocks(tokens: int, folder: Path) -> list[Contender]:
    """Make ours, theirs with the same weights, and the experts without routing, from the same tokens to the sum of
    squares."""
    from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock

    theirs = MixtralSparseMoeBlock(config()).train()
    spec = folder / "block.mod"
    spec.write_text(BLOCK)
    shutil.copytree(ZOO / "parts", folder / "parts")
    ours = modgraph.load(spec, tokens=tokens).build().train()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(0, 0.02)
        weights = ours.state_dict()
        weights["scores.linear.weight"].copy_(theirs.gate.weight)
        for at in range(EXPERTS):
            gate, up = theirs.experts.gate_up_proj[at].chunk(2)
            own = {"gate": gate, "up": up, "down": theirs.experts.down_proj[at]}
            for name, value in own.items():
                weights[f"expert.{at}.swiglu.{name}.weight"].copy_(value)
    x = torch.randn(1, tokens, D)
    torch.testing.assert_close(ours(x), theirs(x), atol=1e-4, rtol=1e-4)
    modules = ours, theirs, Bare().train()
    return [Contender(each, partial(squares, each, x.clone().requires_grad_())) for each in modules]


def squares(module: nn.Module, x: Tensor) -> Tensor:
    result: Tensor = module(x).square().sum()
    return result


def decoders(tokens: int, folder: Path) -> list[Contender]:
    """Make ours and theirs with the same weights, from the same words to the loss of the next words."""
    from transformers import MixtralForCausalLM

    theirs = MixtralForCausalLM(config()).train()
    theirs.save_pretrained(folder)
    ours = modgraph.load(ZOO / "mixtral.mod", **SIZES, router_aux_loss_coef=0.0).build()
    inherit_file(
        ours.graph,
        ours.state_dict(),
        str(folder / "model.safetensors"),
        read_map(str(ZOO / "mixtral_hub.yaml"), ours.graph),
    )
    window = min(tokens, WINDOW)
    words = torch.randint(WORDS, (tokens // window, window + 1))
    read, follow = words[:, :-1].contiguous(), words[:, 1:].contiguous()

    def loss_of_theirs() -> Tensor:
        return nn.functional.cross_entropy(theirs(input_ids=read).logits.flatten(0, 1), follow.flatten())

    def loss_of_ours() -> Tensor:
        return ours.compute({"words": read, "next": follow}).loss

    torch.testing.assert_close(loss_of_ours(), loss_of_theirs(), atol=1e-4, rtol=1e-4)
    return [Contender(ours.train(), loss_of_ours), Contender(theirs, loss_of_theirs)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Mixtral in the language against transformers'.")
    parser.add_argument("--tokens", type=int, nargs="+", default=[16, 512, 2048])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    options = parse_options(parser, tokens=[16], rounds=1)
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    print(f"{'':8} {'tokens':>6} {'ours ms':>8} {'ratio':>6} {'bare':>6}")
    for name, made in (("block", blocks), ("decoder", decoders)):
        for tokens in options.tokens:
            with tempfile.TemporaryDirectory() as folder:
                contenders = made(tokens, Path(folder))
            rounds = [[each.seconds() for each in contenders] for _ in range(options.rounds + WARM)][WARM:]
            ours = 1000 * statistics.median(times[0] for times in rounds)
            ratios = (statistics.median(times[0] / times[at] for times in rounds) for at in range(1, len(contenders)))
            print(f"{name:8} {tokens:6} {ours:8.2f}", *(f"{ratio:6.2f}" for ratio in ratios), flush=True)


if __name__ == "__main__":
    main()
