"""Files of weights: safetensors, whole or in shards, whose tensors are read one at a time, and state dicts of torch."""

from __future__ import annotations

import json
import math
import os
import stat
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from pickle import UnpicklingError
from typing import IO, Self

import torch
from modgraph_runtime.files import refuse_beyond_memory
from safetensors import safe_open
from torch import Tensor

from modgraph.diagnostics import ModgraphError, Report, list_names
from modgraph.files import exists, explain_error, open_file, read_file
from modgraph.training.start.errors import BadShards, BadWeightFile
from modgraph.training.start.mxfp4 import BLOCKS, SCALES, UNPACKED, find_packed, unpack

SAFETENSORS = b"{"  # the ninth byte, after the length of the JSON header; zip archives and pickles have another
WITHIN = ("model", "state_dict")  # keys under which checkpoints of common training scripts keep the weights
WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"  # what a published folder contains, one of both
WIDENED = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}


@dataclass(frozen=True)
class Header:
    """What the header of a file says of a tensor: its shape, and the type of its numbers."""

    shape: tuple[int, ...]
    type: str

    @property
    def is_plain(self) -> bool:
        """Whether its numbers are weights as they are; those of 8 bits and less need scales."""
        return self.type in WIDENED.values()

    @property
    def bytes(self) -> int:
        """Its size in memory, or a lower bound where its type is none of those."""
        return math.prod(self.shape) * (getattr(torch, self.type).itemsize if self.is_plain else 1)

    def empty(self) -> Tensor:
        """Return a tensor of that shape without numbers."""
        return torch.empty(self.shape, device="meta")


@dataclass(frozen=True, repr=False)
class Tensors(Mapping[str, Tensor]):
    """The tensors of a file or of shards by name, each read anew where it is asked for, so that memory holds only those
    in use. Blocks of 4 bits and their scales are one tensor."""

    path: str
    stored: Mapping[str, Header]
    places: Mapping[str, str]  # the file of each, for safetensors
    loaded: Mapping[str, Tensor]  # of a state dict of torch

    @classmethod
    def from_state_dict(cls, path: str, tensors: Mapping[str, Tensor]) -> Self:
        return cls(
            path, {name: Header(tuple(each.shape), _type_of(each)) for name, each in tensors.items()}, {}, tensors
        )

    @cached_property
    def headers(self) -> Mapping[str, Header]:
        """What the headers say, without reading any tensor."""
        packed = find_packed(self.stored)
        parts = {name + suffix for name in packed for suffix in (BLOCKS, SCALES)}
        whole = {name: each for name, each in self.stored.items() if name not in parts}
        return whole | {name: Header(shape, UNPACKED) for name, shape in packed.items()}

    def __getitem__(self, name: str) -> Tensor:
        if name in self.stored:
            return self._read(name)
        refuse_beyond_memory(self.headers[name].bytes)
        return unpack(self._read(name + BLOCKS), self._read(name + SCALES))

    def _read(self, name: str) -> Tensor:
        if name in self.loaded:
            return self.loaded[name]
        with _reporting(self.places[name]), safe_open(self.places[name], "pt") as file:
            refuse_beyond_memory(self.stored[name].bytes)
            tensor: Tensor = file.get_tensor(name)
            return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self.headers)

    def __len__(self) -> int:
        return len(self.headers)


def _type_of(tensor: Tensor) -> str:
    name = str(tensor.dtype).removeprefix("torch.")
    return name if tensor.layout == torch.strided else f"{name}, {tensor.layout}"


def open_tensors(path: str) -> Tensors:
    """Open a file of tensors, an index of shards, or a folder with one of both. Nothing in them is run. Raises
    `ModgraphError`."""
    path = _locate(path)
    with _reporting(path), open_file(path) as file:
        head = file.read(9)
        is_index = head[:8].lstrip()[:1] == b"{" and b"\0" not in head[:8]
        if not is_index and head[8:] != SAFETENSORS:
            file.seek(0)
            return Tensors.from_state_dict(path, _read_state_dict(file, path))
    if is_index:
        return _open_shards(path)
    headers = _read_header(path)
    if not headers:
        raise ModgraphError([BadWeightFile(path=path, reason="it has no tensors")])
    return Tensors(path, headers, dict.fromkeys(headers, path), {})


def _locate(path: str) -> str:
    """Return the index of a folder, or its only file. Raises `ModgraphError`."""
    folder = Path(path)
    with _reporting(path):
        if not stat.S_ISDIR(folder.stat().st_mode):
            return path
    found = [folder / name for name in (INDEX, WHOLE) if (folder / name).exists()]
    if not found:
        raise ModgraphError([BadWeightFile(path=path, reason=f"it is a folder without {INDEX} and {WHOLE}")])
    return str(found[0])


@contextmanager
def _reporting(path: str) -> Iterator[None]:
    """Within it, a file that cannot be read is reported. Raises `ModgraphError`."""
    try:
        yield
    except ModgraphError:
        raise
    except UnpicklingError as error:
        fault = BadWeightFile(path=path, reason="it is damaged, or contains more than tensors")
        raise ModgraphError([fault]) from error
    except Exception as error:  # a damaged file fails anywhere in torch's reader
        raise ModgraphError([BadWeightFile(path=path, reason=explain_error(error).rstrip(". "))]) from error


def _read_header(path: str) -> dict[str, Header]:
    """Describe the tensors of a safetensors file. Raises `ModgraphError`."""
    with _reporting(path):
        open_file(path).close()  # refuses pipes and devices
        with safe_open(path, "pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
            return {
                name: Header(tuple(each.get_shape()), WIDENED.get(kind := each.get_dtype(), kind))
                for name, each in slices.items()
            }


def _open_shards(path: str) -> Tensors:
    """Open the shards that an index names, which stand next to it. Raises `ModgraphError` with every mistake."""
    shard_of, folder = _read_index(path), Path(path).parent
    shards = sorted({*shard_of.values()})
    elsewhere = [f'"{each}"' for each in shards if each in ("", ".", "..") or not {"/", "\\", "\0"}.isdisjoint(each)]
    if elsewhere:
        raise ModgraphError(
            [BadShards(path=path, reason=f"it names {list_names(elsewhere)}, which is no file next to it")]
        )
    missing = [each for each in shards if not exists(folder / each)]
    if missing:
        reason, way_out = f"{list_names(missing)} of {len(shards)} missing", f'add what is missing to "{folder}"'
        raise ModgraphError([BadShards(path=path, reason=reason, way_out=way_out)])
    report, found = Report(), dict[str, Mapping[str, Header]]()
    for shard in shards:
        try:
            found[shard] = _read_header(str(folder / shard))
        except ModgraphError as error:
            report.extend(error.diagnostics)
    lost = [f"{name} in {shard}" for name, shard in shard_of.items() if shard in found and name not in found[shard]]
    if lost:
        report.add(BadShards(path=path, reason=f"there is no {list_names(lost)}"))
    if report.errors:
        raise ModgraphError(report.list_diagnostics())
    headers = {name: found[shard][name] for name, shard in shard_of.items()}
    return Tensors(path, headers, {name: str(folder / shard) for name, shard in shard_of.items()}, {})


def _read_index(path: str) -> dict[str, str]:
    """Return the shard of each tensor. Raises `ModgraphError`."""
    with _reporting(path):
        content = read_file(path)
    try:
        found = json.loads(content)["weight_map"]
    except (ValueError, RecursionError, KeyError, TypeError):
        found = None
    if not (isinstance(found, dict) and found and all(isinstance(shard, str) for shard in found.values())):
        reason = "it is no index of shards, which has weight_map: the file of each tensor"
        raise ModgraphError([BadWeightFile(path=path, reason=reason)])
    return found


def _read_state_dict(file: IO[bytes], path: str) -> dict[str, Tensor]:
    """Read what torch saved. Raises the exceptions of its reader, also where an archive exceeds memory or is
    compressed, and `ModgraphError` where it contains something else."""
    needed = os.fstat(file.fileno()).st_size
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("its tensors are compressed, which torch does not do")
        needed = sum(member.file_size for member in members)
    refuse_beyond_memory(needed)
    file.seek(0)
    content = torch.load(file, map_location="cpu", weights_only=True)
    inner = [content[key] for key in WITHIN if isinstance(content, Mapping) and isinstance(content.get(key), Mapping)]
    content = inner[0] if inner else content
    reason = f"it contains a {type(content).__name__}, not tensors by name"
    if isinstance(content, Mapping):
        wrong = [name for name, value in content.items() if not (isinstance(name, str) and isinstance(value, Tensor))]
        if content and not wrong:
            return dict(content)
        reason = "it has no tensors"
        if wrong:
            reason = f'"{wrong[0]}" in it is a {type(content[wrong[0]]).__name__}, not a tensor with a name'
    raise ModgraphError([BadWeightFile(path=path, reason=reason)])
