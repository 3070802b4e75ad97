"""Damaged files of data, weights and settings: read, or told as an error of modgraph's, soon and in little memory."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import random
import resource
import struct
import sys
import time
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save

import modgraph
from modgraph.data.cifar import CIFAR10
from modgraph.data.conll_file import read_tokens
from modgraph.data.daily_weather import read_weather
from modgraph.data.declaration import check
from modgraph.data.fashion_mnist import read_idx
from modgraph.data.images import read_image
from modgraph.data.npz import read_npz
from modgraph.data.text import words_of_file
from modgraph.data.vocabulary import Tagging, Vocabulary
from modgraph.diagnostics import ModgraphError
from modgraph.store.run_directory import RunDirectory
from modgraph.training.recipe import read_recipe
from modgraph.training.start.tensor_files import open_tensors
from modgraph.training.start.weight_map import read_map
from modgraph.training.stored_run import StoredRun
from tests.assault.campaign import campaign
from tests.assault.specs import HANGS, LONGEST, bounded_time

LARGEST = 500_000  # KB of memory beyond those at the start
PARTS, OF_A_PART, OF_A_TASTE = 50, 1000, 25
SIDE_EFFECTS = frozenset(
    "os.system os.exec os.posix_spawn os.spawn os.fork os.forkpty subprocess.Popen pty.spawn socket.connect".split()
)

GRAPH = modgraph.loads(
    """
model m() {
  input  x: float[4]
  input  words: token[time, 9]
  target y: class[3]
  a = x -> linear(4, name="a") -> linear(3, name="b")
  e = words -> embedding(3, name="d") -> mean
  c = a + e
  output c
  loss cross_entropy(a, y)
}
"""
).ir
RECIPE = """
model: {size: 3, list: [1, 2]}
start: {weights: a.pt, map: map.yaml}
data: {name: npz, train: x.npz, test_fraction: 0.2}
train: &t
  epochs: 3
  optimizer: {name: adamw, lr: 1e-3}
  labels: {y: {weights: [1, 2, 0.5], ignore: -1}}
  early_stop: {at: 0.9}
"""
DAYS = (
    "date,precipitation,temp_max,temp_min,wind,weather\n2012/01/01,0.0,12.8,5.0,4.7,drizzle\n2012-01-02,9,1,2,3,rain\n"
)
SENTENCES = (
    "# text = na costa\n1-2\tna" + "\t_" * 8 + "\n1\tem\tem\tADP\t_\t_\t2\tcase\t_\t_\n"
    "2\ta\to\tDET\t_\tGender=Fem|Number=Sing\t0\troot\t_\tSpaceAfter=No\n\n"
)
MAP = "weights:\n  a.*: a.*\n  b.weight: [b.weight]\n  b.bias: b.bias\nrandom: [d.*, '#']\nunused: [dist.*]\n"


class _Code:
    def __reduce__(self) -> Any:
        return os.system, ("touch executed",)


@dataclass(frozen=True)
class Sample:
    """A sound content, and what makes a file of it: some formats notice most damage unless it is wrapped in them."""

    content: bytes
    wrapped: Callable[[bytes], bytes] = bytes


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def zipped(members: Mapping[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return buffer.getvalue()


def image(kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    values = np.random.default_rng(0).integers(0, 255, (9, 7, 3), dtype=np.uint8)
    Image.fromarray(values).convert(options.pop("mode", "RGB")).save(buffer, kind, **options)
    return buffer.getvalue()


def with_sums(png: bytes) -> bytes:
    """A PNG with the right checksum at every chunk that can be found."""
    fixed, at = png[:8], 8
    while at + 12 <= len(png):
        length = min(int.from_bytes(png[at : at + 4], "big"), len(png) - at - 12)
        body = png[at + 4 : at + 8 + length]
        fixed += png[at : at + 4] + body + struct.pack(">I", zlib.crc32(body))
        at += 12 + length
    return fixed + png[at:]


def saved(tensors: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(tensors, buffer, **options)
    return buffer.getvalue()


def idx(values: bytes, *sizes: int) -> bytes:
    return bytes((0, 0, 8, len(sizes))) + struct.pack(f">{len(sizes)}I", *sizes) + values


def packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


@cache
def samples() -> dict[str, tuple[Sample, ...]]:
    """By the name of a file: what it may be damaged from."""
    rng = np.random.default_rng(0)
    arrays = {
        "x": rng.random((5, 4)),
        "words": rng.integers(0, 9, (5, 3)),
        "time_length": np.full(5, 2),
        "y": np.arange(5) % 3,
    }
    members = {f"{name}.npy": npy(array) for name, array in arrays.items()}
    tensors = {name: torch.ones(3, 4) for name in ("a.weight", "b.weight", "b.bias")}
    with zipfile.ZipFile(io.BytesIO(saved(tensors))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    pickled = next(name for name in parts if name.endswith("data.pkl"))
    pixels = rng.integers(0, 255, 24, dtype=np.uint8).tobytes()
    records = b"".join(bytes([label]) + rng.integers(0, 255, 3 * 32 * 32, dtype=np.uint8).tobytes() for label in (0, 9))
    pngs = (image("PNG"), image("PNG", mode="P", transparency=3), image("PNG", mode="I;16"), image("PNG", mode="LA"))
    text = "in the beginning\nwas the word — and ünïcode\n".encode()
    record = {"format": 1, "splits": {"train": {"examples": 5, "sha256": "ab" * 32}}}
    return {
        "x.npz": (
            Sample(zipped(members)),
            Sample(zipped(members, zipfile.ZIP_DEFLATED)),
            Sample(members["x.npy"], lambda x: zipped({**members, "x.npy": x}, zipfile.ZIP_DEFLATED)),
            Sample(members["words.npy"], lambda x: zipped({**members, "words.npy": x})),
        ),
        "x.idx": (Sample(idx(pixels, 2, 3, 4)),),
        "x.idx.gz": (Sample(packed(idx(pixels, 2, 3, 4))), Sample(idx(pixels, 2, 3, 4), packed)),
        "x.bin": (Sample(records),),
        "x.png": tuple(Sample(png, wrapped) for png in pngs for wrapped in (bytes, with_sums)),
        "x.jpg": (Sample(image("JPEG")), Sample(image("JPEG", progressive=True)), Sample(image("JPEG", mode="CMYK"))),
        "x.txt": (Sample(text),),
        "x.csv": (Sample(DAYS.encode()),),
        "x.conllu": (Sample(SENTENCES.encode()),),
        "x.columns": (Sample(b"-DOCSTART- -X-\n\nthe DT\ncat NN\n\nsat VB\n"),),
        "tagging.json": (Sample(Tagging({"words": Vocabulary(("<unk>", "a"))}, {"upos": ("X", "_")}).as_json()),),
        "vocabulary.json": (Sample(json.dumps(["<unk>", "a", "ü", "<eos>"]).encode()),),
        "x.safetensors": (Sample(save(tensors)),),
        "x.pt": (
            Sample(saved(tensors)),
            Sample(saved({"state_dict": tensors}, _use_new_zipfile_serialization=False)),
            Sample(parts[pickled], lambda x: zipped({**parts, pickled: x})),
            Sample(pickle.dumps({"a": _Code()}), lambda x: zipped({**parts, pickled: x})),
            Sample(pickle.dumps({"a": _Code()}, 2)),
        ),
        "map.yaml": (Sample(MAP.encode()),),
        "recipe.yaml": (Sample(RECIPE.encode()),),
        "data.json": (Sample(json.dumps(record).encode()),),
    }


READERS: dict[str, Callable[[str], object]] = {
    "x.npz": lambda path: check(read_npz(path, {"x", "words", "time_length", "y"}), GRAPH, "data"),
    "x.idx": lambda path: read_idx(path, 3),
    "x.idx.gz": lambda path: read_idx(path, 3),
    "x.bin": CIFAR10.read,
    "x.png": lambda path: read_image(path, 4, 4),
    "x.jpg": lambda path: read_image(path, 4, 4),
    "x.txt": words_of_file,
    "x.csv": read_weather,
    "x.conllu": lambda path: read_tokens(path, ["UPOS", "Feats.Gender"]),
    "x.columns": lambda path: read_tokens(path, ["2"]),
    "tagging.json": lambda path: Tagging.read(path).as_json(),
    "vocabulary.json": lambda path: Vocabulary.read(path).as_json(),
    "x.safetensors": lambda path: dict(open_tensors(path)),
    "x.pt": open_tensors,
    "map.yaml": lambda path: read_map(path, GRAPH),
    "recipe.yaml": lambda path: read_recipe(path).to_yaml(),
    "data.json": lambda path: StoredRun(RunDirectory(Path(path).parent), {}).fingerprints,
}
EXTREMES = [
    struct.pack(order + code, number)
    for order in "<>"
    for code, numbers in (("I", (0, 1, 2**31 - 1, 2**31, 2**32 - 1)), ("Q", (2**40, 2**63 - 1, 2**64 - 1)))
    for number in numbers
]


def damaged(content: bytes, donors: list[bytes], rng: random.Random) -> bytes:
    """A content with one to four bits, bytes or stretches changed, cut, doubled or taken from another."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at, end = sorted((rng.randrange(len(content) + 1), rng.randrange(len(content) + 1)))
        kind = rng.choice("cut drop insert number double splice byte bit bit bit bit".split())
        if kind == "cut":
            content = content[:at]
        elif kind == "drop":
            content = content[:at] + content[min(end, at + 8) :]
        elif kind == "insert":
            content = content[:at] + rng.randbytes(rng.randint(1, 9)) + content[at:]
        elif kind == "number":
            number = rng.choice(EXTREMES)
            content = content[:at] + number + content[at + len(number) :]
        elif kind == "double":
            content = content[:end] + content[at:end] * rng.choice((1, 1, 30)) + content[end:]
        elif kind == "splice":
            donor = rng.choice(donors)
            begin = rng.randrange(len(donor))
            content = content[:at] + donor[begin : begin + rng.randint(1, 200)] + content[end:]
        elif at < len(content):
            byte = rng.randrange(256) if kind == "byte" else content[at] ^ 1 << rng.randrange(8)
            content = content[:at] + bytes([byte]) + content[at + 1 :]
    return content


def read_or_refused(reader: Callable[[str], object], path: Path, seconds: float = HANGS) -> str:
    """`read` or `told`. Raises whatever else a reader raises."""
    try:
        with warnings.catch_warnings(), bounded_time(seconds):
            warnings.simplefilter("error")
            reader(str(path))
        return "read"
    except ModgraphError as error:
        assert str(error).strip()
        return "told"


def assault(name: str, count: int, rng: random.Random, folder: Path, seconds: float) -> Counter[str]:
    """How many damaged files of one kind were read and how many told."""
    donors = [sample.content for each in samples().values() for sample in each]
    counts: Counter[str] = Counter()
    path = folder / name
    for _ in range(count):
        sample = rng.choice(samples()[name])
        path.write_bytes(sample.wrapped(damaged(sample.content, donors, rng)))
        try:
            counts[f"{name}: {read_or_refused(READERS[name], path, seconds)}"] += 1
        except BaseException as error:
            kept = Path(".assault") / f"{time.time_ns()}-{name}"
            kept.parent.mkdir(exist_ok=True)
            kept.write_bytes(path.read_bytes())
            raise AssertionError(f"{kept}: {type(error).__name__}: {error}") from error
    return counts


@cache
def started() -> list[str]:
    """What has been started in this process since, whoever did it."""
    found: list[str] = []
    sys.addaudithook(lambda event, _: found.append(event) if event in SIDE_EFFECTS else None)
    return found


def whole_assault(seed: int, count: int, folder: Path, seconds: float) -> Counter[str]:
    """So many damaged files of each kind; nothing in them is run, and little memory taken."""
    before, events = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, len(started())
    rng = random.Random(seed)
    found = sum((assault(name, count, rng, folder, seconds) for name in READERS), Counter[str]())
    assert started()[events:] == []
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < LARGEST
    assert not {each.name for each in folder.iterdir()} - READERS.keys()
    return found


def part(number: int) -> Counter[str]:
    """A part of the long assault."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return whole_assault(number, -(-OF_A_PART // len(READERS)), Path(folder), LONGEST)


def test_the_samples_are_sound(tmp_path: Path) -> None:
    for name, each in samples().items():
        for sample in each:
            (tmp_path / name).write_bytes(sample.wrapped(sample.content))
            sound = b"touch executed" not in sample.content
            assert read_or_refused(READERS[name], tmp_path / name) == ("read" if sound else "told"), (name, sample)


def test_a_taste_of_damaged_files(tmp_path: Path) -> None:
    found = whole_assault(-1, OF_A_TASTE, tmp_path, HANGS)
    assert found.total() == OF_A_TASTE * len(READERS)


@pytest.mark.slow
def test_fifty_thousand_damaged_files() -> None:
    found = campaign("data_files", part, PARTS)
    assert found.total() >= PARTS * OF_A_PART
