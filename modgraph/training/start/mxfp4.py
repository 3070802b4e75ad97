"""Unpacks MXFP4, as gpt-oss publishes its experts: 32 numbers of 4 bits share a scale of 8 (OCP Microscaling Formats
1.0, 2023).

A weight `x` [..., in, out] is stored as `x_blocks` [..., out, in / 32, 16], each byte with two numbers, and `x_scales`
[..., out, in / 32], powers of two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

BLOCKS, SCALES = "_blocks", "_scales"
UNPACKED = "bfloat16"  # which holds the numbers exactly, but for scales at the ends of their range
BYTES = ("U8", "uint8")  # names of their type, in safetensors and in torch
HALF = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # the numbers of 4 bits whose first is 0
NUMBERS = (*HALF, *(-each for each in HALF))
PAIRS = torch.tensor(
    [(low, high) for high in NUMBERS for low in NUMBERS], dtype=getattr(torch, UNPACKED)
)  # of each byte
BIAS = 127  # of the exponents


def find_packed(headers: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Find the weights that are stored as blocks and scales, with their shapes. Headers have a shape and a type."""
    found = dict[str, tuple[int, ...]]()
    for name in (each.removesuffix(BLOCKS) for each in headers if each.endswith(BLOCKS)):
        if name + SCALES in headers and name not in headers:
            blocks, scales = headers[name + BLOCKS], headers[name + SCALES]
            shape: tuple[int, ...] = scales.shape
            if {blocks.type, scales.type} <= {*BYTES} and blocks.shape == (*shape, 16) and len(shape) > 1:
                found[name] = (*shape[:-2], 32 * shape[-1], shape[-2])
    return found


def unpack(blocks: Tensor, scales: Tensor) -> Tensor:
    """Return the numbers [..., in, out] of blocks and scales."""
    *outer, out, count = scales.shape
    found = torch.empty(*outer, out, count, 32, dtype=PAIRS.dtype)
    pairs = PAIRS.view(torch.int32).flatten()  # so that both are read at once
    parts = found.view(-1, out, count, 32), blocks.view(-1, out, count, 16), scales.view(-1, out, count, 1)
    for numbers, bytes_, exponents in zip(*parts, strict=True):  # indices take four bytes for each of these
        scale = torch.exp2(exponents.float() - BIAS).to(PAIRS.dtype)
        torch.mul(pairs[bytes_.int()].view(PAIRS.dtype), scale, out=numbers)
    return found.flatten(-2).mT
