"""Tensors by name from a file made elsewhere: safetensors, or a state dict that torch has saved."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load
from torch import Tensor

from modgraph.diagnostics import ModgraphError
from modgraph.training.errors import BadWeightFile

WITHIN = ("model", "state_dict")  # where checkpoints of the usual training scripts keep the weights


def read_tensors(path: str) -> dict[str, Tensor]:
    """The tensors of a file by name. Raises `ModgraphError`; nothing in it is run."""
    try:
        content = _content(Path(path))
    except Exception as error:  # a damaged file fails anywhere in torch's reader
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0] or type(error).__name__
        raise ModgraphError([BadWeightFile(path=path, reason=reason.rstrip(". "))]) from error
    reason = _problem(content)
    if reason is not None:
        raise ModgraphError([BadWeightFile(path=path, reason=reason)])
    return dict(content)


def _content(path: Path) -> Any:
    if path.suffix == ".safetensors":
        return load(path.read_bytes())
    content = torch.load(path, map_location="cpu", weights_only=True)
    inner = [content[key] for key in WITHIN if isinstance(content, Mapping) and isinstance(content.get(key), Mapping)]
    return inner[0] if inner else content


def _problem(content: Any) -> str | None:
    """Why this is no set of weights, or None."""
    if not isinstance(content, Mapping):
        return f"it holds a {type(content).__name__}, not tensors by name"
    for name, value in content.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            return f'"{name}" in it is a {type(value).__name__}, not a tensor with a name'
        if value.layout != torch.strided or not value.dtype.is_floating_point:
            return f'"{name}" in it is a tensor of {value.dtype}, {value.layout}; weights are plain real numbers'
    return None if content else "there are no tensors in it"
