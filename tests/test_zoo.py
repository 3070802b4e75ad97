"""Published mixtures, each written down on one screen: held against plain torch, trained and exported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor

import modgraph
from modgraph.cli import main
from modgraph.store.journal import read_metrics
from modgraph.store.run_directory import RunDirectory
from modgraph.training.run import finish, start_run

Weights = Mapping[str, Tensor]
Mix = Callable[[Weights, Tensor], Tensor]
EXPERTS, SLOTS, CAPACITY = 4, 2, 8


def below(weights: Weights, prefix: str) -> Weights:
    """The weights under a name, by the rest of theirs."""
    return {name.removeprefix(prefix): each for name, each in weights.items() if name.startswith(prefix)}


def expert(weights: Weights, index: int, x: Tensor) -> Tensor:
    own = below(weights, f"expert.{index}.")
    return F.linear(
        F.gelu(F.linear(x, own["linear.weight"], own["linear.bias"])), own["linear2.weight"], own["linear2.bias"]
    )


def soft(weights: Weights, h: Tensor) -> Tensor:
    """Soft MoE, equations 1 to 3: Y = C f(Dᵀ X); slot s of expert e is column s · experts + e."""
    logits = h @ weights["scores.linear.weight"].T
    dispatch, combine = logits.softmax(1), logits.softmax(2)
    slots = dispatch.transpose(1, 2) @ h
    results = torch.stack([expert(weights, at % EXPERTS, slots[:, at]) for at in range(SLOTS * EXPERTS)], 1)
    return combine @ results


def expert_choice(weights: Weights, h: Tensor) -> Tensor:
    """Expert choice, equations 1 to 3: each expert takes the tokens of its largest scores S = softmax(X W)."""
    scores = (h @ weights["scores.linear.weight"].T).softmax(-1)
    total = torch.zeros_like(h)
    for example in range(len(h)):
        for index in range(EXPERTS):
            gates, tokens = scores[example, :, index].topk(CAPACITY)
            total[example, tokens] += gates.unsqueeze(1) * expert(weights, index, h[example, tokens])
    return total


def transformer(weights: Weights, image: Tensor, mix: Mix, depth: int, heads: int = 4) -> Tensor:
    """Patches of two by two, blocks of attention and a mixture, the mean of the tokens, a linear map."""
    norm = lambda x, own: F.layer_norm(x, x.shape[-1:], own["layer_norm.weight"], own["layer_norm.bias"], 1e-6)  # noqa: E731
    x = F.conv2d(image, weights["x.patch_embed.weight"], weights["x.patch_embed.bias"], stride=2)
    x = x.flatten(2).transpose(1, 2) + weights["x.position.weight"]
    for at in range(depth):
        block = below(weights, f"blocks.{at}.")
        attention = below(block, "x.")
        qkv = F.linear(norm(x, attention), attention["attention.qkv.weight"], attention["attention.qkv.bias"])
        q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in qkv.chunk(3, -1))
        shares = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1)
        mixed = (shares @ v).transpose(1, 2).flatten(2)
        x = x + F.linear(mixed, attention["attention.out.weight"], attention["attention.out.bias"])
        x = x + mix(block, norm(x, below(block, "h.")))
    out = below(weights, "logits.")
    return F.linear(norm(x, out).mean(1), out["linear.weight"], out["linear.bias"])


MIXES = {"soft_moe": soft, "expert_choice": expert_choice}


@pytest.mark.parametrize("name", MIXES)
def test_it_computes_what_plain_torch_does_with_the_same_weights(name: str) -> None:
    model = modgraph.load(f"specs/zoo/{name}.mod").build(seed=3).double()
    image = torch.rand(3, 1, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = transformer(model.state_dict(), image, MIXES[name], depth=2)
    torch.testing.assert_close(model(image), expected, atol=1e-10, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["expert_choice", pytest.param("soft_moe", marks=pytest.mark.slow)])
def test_it_learns_and_is_exported(name: str, tmp_path: Path) -> None:
    few = {"model.depth": 1, "model.dim": 16, "data.limit": 300, "train.epochs": 2}
    with start_run(f"specs/zoo/{name}.mod", None, few, str(tmp_path / "run")) as engine:
        finish(engine)
    measured = read_metrics(RunDirectory(tmp_path / "run"))
    losses = [record["total_loss"] for record in measured if record["split"] == "train"]
    assert losses[-1] < losses[0]
    assert main(["export", str(tmp_path / "run"), "-o", str(tmp_path / "m.onnx")]) == 0
