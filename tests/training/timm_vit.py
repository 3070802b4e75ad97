"""A vision transformer as timm names and lays out its tensors: tensors to start from, and their forward in plain torch.

Shapes and names are those of `timm.create_model("deit_small_patch16_224").state_dict()`, made small.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor

SIZE, PATCH, WIDTH, DEPTH, HEADS, CLASSES = 8, 4, 12, 3, 3, 5
PARAMETERS = {
    "size": SIZE, "patch": PATCH, "dim": WIDTH, "depth": DEPTH, "heads": HEADS, "classes": CLASSES,
    "experts": 3, "width": 4,
}  # fmt: skip

Weights = dict[str, Tensor]


def timm_tensors(classes: int = CLASSES, size: int = SIZE, depth: int = DEPTH) -> Weights:
    """Random tensors under timm's names."""
    shapes: dict[str, tuple[int, ...]] = {
        "cls_token": (1, 1, WIDTH),
        "pos_embed": (1, (size // PATCH) ** 2 + 1, WIDTH),
        "patch_embed.proj.weight": (WIDTH, 3, PATCH, PATCH),
        "patch_embed.proj.bias": (WIDTH,),
    }
    for block in (f"blocks.{i}" for i in range(depth)):
        for norm in ("norm1", "norm2"):
            shapes |= {f"{block}.{norm}.weight": (WIDTH,), f"{block}.{norm}.bias": (WIDTH,)}
        for name, rows, columns in (
            ("attn.qkv", 3 * WIDTH, WIDTH), ("attn.proj", WIDTH, WIDTH),
            ("mlp.fc1", 4 * WIDTH, WIDTH), ("mlp.fc2", WIDTH, 4 * WIDTH),
        ):  # fmt: skip
            shapes |= {f"{block}.{name}.weight": (rows, columns), f"{block}.{name}.bias": (rows,)}
    shapes |= {"norm.weight": (WIDTH,), "norm.bias": (WIDTH,)}
    shapes |= {"head.weight": (classes, WIDTH), "head.bias": (classes,)}
    generator = torch.Generator().manual_seed(0)
    return {name: torch.randn(shape, generator=generator) * 0.3 for name, shape in shapes.items()}


def timm_forward(w: Weights, image: Tensor) -> Tensor:
    """Logits [B, classes] of images [B, 3, H, W], after timm's VisionTransformer (pre-norm, class token)."""
    x = F.conv2d(image, w["patch_embed.proj.weight"], w["patch_embed.proj.bias"], stride=PATCH)
    x = x.reshape(*x.shape[:2], -1).permute(0, 2, 1)
    x = torch.cat([w["cls_token"].repeat(len(x), 1, 1), x], dim=1) + w["pos_embed"]
    for i in range(DEPTH):
        x = x + _attention(w, f"blocks.{i}.attn", _norm(w, f"blocks.{i}.norm1", x))
        hidden = F.gelu(_linear(w, f"blocks.{i}.mlp.fc1", _norm(w, f"blocks.{i}.norm2", x)))
        x = x + _linear(w, f"blocks.{i}.mlp.fc2", hidden)
    return _linear(w, "head", _norm(w, "norm", x)[:, 0])


def _attention(w: Weights, name: str, x: Tensor) -> Tensor:
    batch, tokens, width = x.shape
    qkv = _linear(w, f"{name}.qkv", x).reshape(batch, tokens, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
    q, k, v = qkv[0], qkv[1], qkv[2]
    shares = (q @ k.transpose(-2, -1) * (width // HEADS) ** -0.5).softmax(dim=-1)
    return _linear(w, f"{name}.proj", (shares @ v).transpose(1, 2).reshape(batch, tokens, width))


def _linear(w: Weights, name: str, x: Tensor) -> Tensor:
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def _norm(w: Weights, name: str, x: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    scaled = centred / (centred.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]
