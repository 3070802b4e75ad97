"""Tensors by name from a file made elsewhere: safetensors, or a state dict that torch has saved."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pickle import UnpicklingError
from typing import Any

import torch
from modgraph_runtime.files import refuse_beyond_memory
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
    reason = f"it holds a {type(content).__name__}, not tensors by name"
    if isinstance(content, Mapping):
        wrong = [name for name, value in content.items() if not (isinstance(name, str) and isinstance(value, Tensor))]
        if content and not wrong:
            return dict(content)
        reason = "there are no tensors in it"
        if wrong:
            reason = f'"{wrong[0]}" in it is a {type(content[wrong[0]]).__name__}, not a tensor with a name'
    raise ModgraphError([BadWeightFile(path=path, reason=reason)])


def _content(path: str) -> Any:
    """What a file holds, told by its first bytes: names may be those of links. Raises whatever its reader raises, also
    where memory could not take what an archive holds, or where that is packed."""
    with open_file(path) as file:
        safetensors = file.read(9)[8:] == SAFETENSORS
        needed = os.fstat(file.fileno()).st_size
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                members = archive.infolist()
            if any(member.compress_type != zipfile.ZIP_STORED for member in members):
                raise ValueError("its tensors are compressed, which torch does not do")
            needed = sum(member.file_size for member in members)
        refuse_beyond_memory(needed)
        file.seek(0)
        if safetensors:
            return load(file.read())
        content = torch.load(file, map_location="cpu", weights_only=True)
    inner = [content[key] for key in WITHIN if isinstance(content, Mapping) and isinstance(content.get(key), Mapping)]
    return inner[0] if inner else content
