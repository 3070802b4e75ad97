"""Tensors by name from a file made elsewhere: safetensors, or a state dict that torch has saved."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pickle import UnpicklingError
from typing import IO, Any

import torch
from modgraph_runtime.memory import refuse_beyond_memory
from safetensors.torch import load
from torch import Tensor

from modgraph.diagnostics import ModgraphError
from modgraph.files import open_file, reason_of
from modgraph.training.start.errors import BadWeightFile

SAFETENSORS = b"{"  # the ninth byte, after the length of the header in JSON; no zip archive and no pickle has it there
WITHIN = ("model", "state_dict")  # where checkpoints of the usual training scripts keep the weights


def read_tensors(path: str) -> dict[str, Tensor]:
    """The tensors of a file by name. Raises `ModgraphError`; nothing in it is run."""
    try:
        content = _content(path)
    except UnpicklingError as error:
        fault = BadWeightFile(path=path, reason="it is damaged, or holds more than tensors")
        raise ModgraphError([fault]) from error
    except Exception as error:  # a damaged file fails anywhere in torch's reader
        raise ModgraphError([BadWeightFile(path=path, reason=reason_of(error).rstrip(". "))]) from error
    reason = _problem(content)
    if reason is not None:
        raise ModgraphError([BadWeightFile(path=path, reason=reason)])
    return dict(content)


def _content(path: str) -> Any:
    """What a file holds, told by its first bytes: names may be those of links. Raises whatever its reader raises."""
    with open_file(path) as file:
        safetensors = file.read(9)[8:] == SAFETENSORS
        _refuse_too_large(file)
        file.seek(0)
        if safetensors:
            return load(file.read())
        content = torch.load(file, map_location="cpu", weights_only=True)
    inner = [content[key] for key in WITHIN if isinstance(content, Mapping) and isinstance(content.get(key), Mapping)]
    return inner[0] if inner else content


def _refuse_too_large(file: IO[bytes]) -> None:
    """Raises `OSError` where memory could not take what an archive holds, `ValueError` where it is packed."""
    needed = os.fstat(file.fileno()).st_size
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("its tensors are compressed, which torch does not do")
        needed = sum(member.file_size for member in members)
    refuse_beyond_memory(needed)


def _problem(content: Any) -> str | None:
    """Why this is no set of weights, or None."""
    if not isinstance(content, Mapping):
        return f"it holds a {type(content).__name__}, not tensors by name"
    for name, value in content.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            return f'"{name}" in it is a {type(value).__name__}, not a tensor with a name'
    return None if content else "there are no tensors in it"
