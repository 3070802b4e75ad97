"""Files of data that are not what they should be: no file, too large, damaged, of another kind; each is told."""

from __future__ import annotations

import gzip
import io
import os
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, PngImagePlugin
from safetensors.torch import save_file

import modgraph
from modgraph.data.cifar import CIFAR10
from modgraph.data.conll_file import read_tokens
from modgraph.data.daily_weather import read_weather
from modgraph.data.declaration import check
from modgraph.data.fashion_mnist import read_idx
from modgraph.data.image_folders import ImageFolders, list_folders
from modgraph.data.images import read_image
from modgraph.data.npz import read_npz
from modgraph.data.text import words_of_file
from modgraph.data.vocabulary import Tagging, Vocabulary
from modgraph.diagnostics import ModgraphError
from modgraph.training.recipe import read_recipe
from modgraph.training.start.tensor_files import open_tensors
from modgraph.training.start.weight_map import read_map

GRAPH = modgraph.loads("model m() { input x: float[2] target y: class[3] output x }").ir
READERS: dict[str, Callable[[str], object]] = {
    "x.npz": lambda path: read_npz(path, {"x"}),
    "x.idx": lambda path: read_idx(path, 1),
    "x.idx.gz": lambda path: read_idx(path, 1),
    "x.bin": CIFAR10.read,
    "x.png": lambda path: read_image(path, 2, 2),
    "x.jpg": lambda path: read_image(path, 2, 2),
    "x.txt": words_of_file,
    "x.csv": read_weather,
    "x.conllu": lambda path: read_tokens(path, ["UPOS", "Feats.Gender"] if path.endswith(".conllu") else ["2"]),
    "x.columns": lambda path: read_tokens(path, ["2"]),
    "tagging.json": Tagging.read,
    "vocabulary.json": Vocabulary.read,
    "x.safetensors": lambda path: dict(open_tensors(path)),
    "x.pt": open_tensors,
    "map.yaml": lambda path: read_map(path, GRAPH),
    "recipe.yaml": read_recipe,
}


def message_of(action: Callable[[], object]) -> str:
    with pytest.raises(ModgraphError) as caught:
        action()
    return str(caught.value)


def idx(values: bytes, *sizes: int) -> bytes:
    return bytes((0, 0, 8, len(sizes))) + struct.pack(f">{len(sizes)}I", *sizes) + values


# ---------------------------------------------------------------- what is no ordinary file


def fifo(path: Path) -> None:
    os.mkfifo(path)


def link_to_fifo(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


NO_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a pipe": (fifo, "it is a pipe, not a file"),
    "a link to a pipe": (link_to_fifo, "it is a pipe, not a file"),
    "a link to a device": (lambda path: path.symlink_to("/dev/zero"), "it is a device, not a file"),
    "a folder": (Path.mkdir, "it is a folder"),
    "a link to nothing": (lambda path: path.symlink_to("nowhere"), "no such file|cannot find the recipe"),
    "a link to itself": (lambda path: path.symlink_to(path.name), "too many levels|cannot find the recipe"),
    "a sparse terabyte": (lambda path: (path.touch(), os.truncate(path, 2**40)), "of memory|too|is no|not|NUL"),
    "a name too long": (lambda path: path.symlink_to("n" * 300), "name too long|cannot find the recipe"),
}


@pytest.mark.parametrize("kind", NO_FILES)
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_ordinary_file_is_reported_at_once(tmp_path: Path, name: str, kind: str) -> None:
    make, words = NO_FILES[kind]
    make(tmp_path / name)
    tracemalloc.start()
    message = message_of(lambda: READERS[name](str(tmp_path / name)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert any(word in message for word in words.split("|")), message
    assert peak < 50e6


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("path", ["a\0b", "n" * 300])
def test_what_can_be_no_name_is_reported(name: str, path: str) -> None:
    assert "error[MG" in message_of(lambda: READERS[name](path))


def test_files_are_read_through_links(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    np.savez(tmp_path / "store/a", x=np.ones((1, 2)))
    save_file({"a": torch.ones(2)}, tmp_path / "store/b")
    (tmp_path / "folder").symlink_to("store")
    (tmp_path / "first").symlink_to("folder/a.npz")
    (tmp_path / "second").symlink_to("first")
    (tmp_path / "weights").symlink_to("folder/b")
    (tmp_path / "store/c.gz").write_bytes(gzip.compress(idx(b"ab", 2)))
    (tmp_path / "labels").symlink_to("folder/c.gz")
    assert read_npz(str(tmp_path / "second"), {"x"}).values["x"].tolist() == [[1, 1]]
    assert read_idx(str(tmp_path / "labels"), 1).tolist() == [97, 98]
    assert open_tensors(str(tmp_path / "weights"))["a"].tolist() == [1, 1]


def test_folders_of_images_may_be_links(tmp_path: Path) -> None:
    for name in ("real/dog", "root/art", "root/photo/dog"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("real/dog/0.png", "real/1.png"):
        Image.new("RGB", (2, 2), (255, 0, 0)).save(tmp_path / name)
    (tmp_path / "root/art/dog").symlink_to(tmp_path / "real/dog")
    (tmp_path / "root/photo/dog/1.png").symlink_to(tmp_path / "real/1.png")
    found = list_folders(tmp_path / "root")
    assert {name: {kind: len(paths) for kind, paths in kinds.items()} for name, kinds in found.items()} == {
        "art": {"dog": 1},
        "photo": {"dog": 1},
    }
    for kinds in found.values():
        assert read_image(str(kinds["dog"][0]), 1, 1).ravel().tolist() == [1, 0, 0]
    (tmp_path / "root/round").symlink_to("round")  # no folder
    assert list_folders(tmp_path / "root") == found
    (tmp_path / "root/long").symlink_to("n" * 300)
    assert "name too long" in message_of(lambda: list_folders(tmp_path / "root"))
    assert "null byte" in message_of(lambda: ImageFolders(root="a\0b").description())


# ---------------------------------------------------------------- what would be too large


def test_a_gzip_of_idx_is_read_no_further_than_its_header_says(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(idx(bytes(2**25), 4), 1))
    tracemalloc.start()
    assert "more bytes than the 12" in message_of(lambda: read_idx(str(path), 1))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20


@pytest.mark.parametrize("name", ["x", "x.gz"])
def test_a_header_that_announces_too_much_is_reported_by_size(tmp_path: Path, name: str) -> None:
    content = idx(bytes(1000), 2**32 - 1, 2**32 - 1, 2**32 - 1)
    (tmp_path / name).write_bytes(gzip.compress(content) if name == "x.gz" else content)
    assert "but its header needs 79,228,162,458,924" in message_of(lambda: read_idx(str(tmp_path / name), 3))


@pytest.fixture
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a megabyte of memory."""
    monkeypatch.setattr("modgraph_runtime.files.free_memory", lambda: 10**6)


@pytest.mark.usefixtures("small_machine")
@pytest.mark.parametrize("name", ["x.npz", "x.idx", "x.idx.gz", "x.bin", "x.txt", "x.safetensors", "x.pt"])
def test_what_memory_cannot_hold_is_reported_by_size_before_it_is_read(tmp_path: Path, name: str) -> None:
    path, size = tmp_path / name, 3073 * 2000
    zeros = idx(bytes(size), size)
    writers: dict[str, Callable[[], object]] = {
        "x.npz": lambda: np.savez_compressed(path, x=np.zeros(size, np.uint8), y=np.zeros(5)),
        "x.idx.gz": lambda: path.write_bytes(gzip.compress(zeros)),
        "x.safetensors": lambda: save_file({"a": torch.zeros(size // 4)}, path),
        "x.pt": lambda: torch.save({"a": torch.zeros(size // 4)}, path),
    }
    writers.get(name, lambda: path.write_bytes(zeros if name == "x.idx" else bytes(size)))()
    tracemalloc.start()
    assert "it needs 6.1 MB of memory, and 1.0 MB are free" in message_of(lambda: READERS[name](str(path)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**6
    if name == "x.npz":
        assert len(read_npz(str(path), {"y"})) == 5  # what is not wanted is not read


def bomb(width: int, height: int, colours: int = 2) -> bytes:
    """A PNG of a few bytes that announces these sizes and colours."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, colours, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(100))) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(("width", "height"), [(9_459, 9_459), (13_377, 13_377), (20_000, 20_000), (2**31 - 1, 1)])
def test_an_image_of_too_many_pixels_is_reported(tmp_path: Path, width: int, height: int) -> None:
    """Below the bound at which Pillow warns, below that at which it refuses, and beyond."""
    (tmp_path / "0.png").write_bytes(bomb(width, height))
    assert "pixels" in message_of(lambda: read_image(str(tmp_path / "0.png"), 2, 2))


# ---------------------------------------------------------------- images


def test_no_program_is_started_for_an_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin/gs"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\necho 10\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    path = tmp_path / "0.jpg"
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n%%EOF\n")
    assert "it is no JPEG and no PNG" in message_of(lambda: read_image(str(path), 2, 2))
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("kind", ["GIF", "BMP", "TIFF", "WEBP", "PPM", "ICO"])
def test_images_of_other_formats_are_reported(tmp_path: Path, kind: str) -> None:
    Image.new("RGB", (8, 8), (9, 9, 9)).save(tmp_path / "0.jpg", kind)
    assert "it is no JPEG and no PNG" in message_of(lambda: read_image(str(tmp_path / "0.jpg"), 2, 2))


@pytest.mark.parametrize("kind", ["zTXt", "iCCP"])
def test_chunks_that_unpack_to_much_cost_little(tmp_path: Path, kind: str) -> None:
    info = PngImagePlugin.PngInfo()
    info.add(kind.encode(), b"name\0\0" + zlib.compress(bytes(2**26), 1))
    Image.new("RGB", (2, 2), (255, 255, 255)).save(tmp_path / "0.png", pnginfo=info)
    tracemalloc.start()
    try:
        assert (read_image(str(tmp_path / "0.png"), 2, 2) == 1).all()
    except ModgraphError as error:
        assert "0.png" in str(error)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6


def test_grey_of_sixteen_bits_is_not_cut_off(tmp_path: Path) -> None:
    values = np.linspace(0, 65535, 64).astype(np.uint16).reshape(8, 8)
    Image.fromarray(values).save(tmp_path / "0.png")
    np.testing.assert_allclose(read_image(str(tmp_path / "0.png"), 8, 8)[0], values / 65535, atol=1 / 250)


def test_an_image_without_its_palette_is_reported(tmp_path: Path) -> None:
    (tmp_path / "0.png").write_bytes(bomb(2, 2, colours=3))
    assert "it has no palette" in message_of(lambda: read_image(str(tmp_path / "0.png"), 2, 2))


def test_an_animation_is_its_first_image(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (2, 2), (level, 0, 0)) for level in (255, 0)]
    frames[0].save(tmp_path / "0.png", save_all=True, append_images=frames[1:])
    assert read_image(str(tmp_path / "0.png"), 2, 2)[0].min() == 1


def test_warnings_of_pillow_are_nothing_to_the_user(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    image = Image.new("P", (2, 2))
    image.save(tmp_path / "0.png", transparency=bytes(range(4)))
    read_image(str(tmp_path / "0.png"), 2, 2)
    assert not recwarn.list


# ---------------------------------------------------------------- damaged


def test_a_damaged_gzip_is_reported_whatever_byte_is_wrong(tmp_path: Path) -> None:
    """Or read, where the byte says nothing of the content: times, names, the system."""
    path, values = tmp_path / "x.gz", bytes(np.random.default_rng(0).integers(0, 9, 60, dtype=np.uint8))
    whole = gzip.compress(idx(values, 60))
    read = 0
    damaged = [
        whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :] for at in range(len(whole)) for flip in (1, 255)
    ]
    for content in [*damaged, *(whole[:length] for length in range(len(whole)))]:
        path.write_bytes(content)
        try:
            found = read_idx(str(path), 1)
        except ModgraphError as error:
            assert {each.code for each in error.diagnostics} == {"MG510"}
        else:
            assert found.tobytes() == values
            read += 1
    assert read < 20


def test_a_damaged_npz_is_reported_whatever_byte_is_wrong(tmp_path: Path) -> None:
    path, values = tmp_path / "x.npz", np.random.default_rng(0).random((4, 2))
    np.savez_compressed(path, x=values)
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :])
        try:
            found = read_npz(str(path), {"x"})
        except ModgraphError as error:
            assert {each.code for each in error.diagnostics} == {"MG510"}
        else:
            assert not found.values or np.array_equal(found.values["x"], values)


# ---------------------------------------------------------------- arrays of every kind


def member(header: str, content: bytes = b"", version: int = 1) -> bytes:
    text = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text + content


def archive(path: Path, *members: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> str:
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in members:
            file.writestr(name, content)
    return str(path)


PLAIN = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }"
NO_ARRAYS = {
    "a huge shape": (member(PLAIN.replace("(2, 2)", "(999999999, 999999999)")), "by its header, and 129 in the file"),
    "a huge item": (member(PLAIN.replace("<f8", "V2000000000")), "by its header"),
    "a negative shape": (member(PLAIN.replace("(2, 2)", "(-2, -2)"), bytes(32)), "(-2, -2)"),
    "too few bytes": (member(PLAIN, bytes(31)), "161 bytes by its header, and 160 in the file"),
    "too many bytes": (member(PLAIN, bytes(33)), "by its header"),
    "objects": (member(PLAIN.replace("<f8", "|O"), bytes(32)), "pickled objects"),
    "objects in records": (member(PLAIN.replace("'<f8'", "[('a', '|O')]"), bytes(32)), "pickled objects"),
    "no shape": (member("{'descr': '<f8'}"), ""),
    "code": (member("__import__('os').system('touch started')"), ""),
    "brackets": (member("(" * 110), ""),
    "a later version": (member(PLAIN, bytes(32), version=3), "version"),
    "no array": (b"text", '"x" is no array'),
    "nothing": (b"", '"x" is no array'),
}


@pytest.mark.parametrize("kind", NO_ARRAYS)
def test_members_that_hold_no_plain_array_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.chdir(tmp_path)
    content, words = NO_ARRAYS[kind]
    path = archive(tmp_path / "x.npz", ("x.npy", content), ("y.npy", member(PLAIN, bytes(32))))
    assert words in message_of(lambda: read_npz(path, {"x", "y"}))
    assert read_npz(path, {"y"}).values["y"].tolist() == [[0, 0], [0, 0]]
    assert [each.name for each in tmp_path.iterdir()] == ["x.npz"]
    assert not recwarn.list


def test_members_in_odd_places_are_right_or_reported(tmp_path: Path) -> None:
    good = member(PLAIN, bytes(32))
    with pytest.warns(UserWarning, match="Duplicate"):
        path = archive(tmp_path / "twice.npz", ("x.npy", good), ("x.npy", good))
    assert 'it has "x" twice' in message_of(lambda: read_npz(path, {"x"}))
    path = archive(tmp_path / "x.npz", ("../x.npy", good), ("/x.npy", good), ("x.npy", good), ("x/", b""))
    assert list(read_npz(path, {"x"}).values) == ["x"]
    path = archive(tmp_path / "y.npz", ("x.npy", good), method=zipfile.ZIP_LZMA)
    assert "a compression that numpy does not use" in message_of(lambda: read_npz(path, {"x"}))


KINDS: dict[str, tuple[Any, str | None]] = {
    "fortran": (np.asfortranarray([[0, 1], [2, 3]]), None),
    "big-endian": (np.array([[0, 1], [2, 3]], ">f8"), None),
    "half": (np.array([[0, 1], [2, 3]], np.float16), None),
    "long double": (np.array([[0, 1], [2, 3]], np.longdouble), None),
    "bool": (np.array([[0, 1], [1, 1]], bool), None),
    "unsigned": (np.array([[0, 1], [2, 3]], np.uint64), None),
    "too large for float32": (np.array([[0, 1], [2, 1e300]]), "too large for float32"),
    "infinite long double": (np.array([[0, 1], [2, 1e300]], np.longdouble) * np.longdouble(1e300), "too large"),
    "complex": (np.array([[0, 1], [2, 3j]]), "holds complex128, not numbers"),
    "dates": (np.array([[0, 1], [2, 3]], "M8[s]"), "not numbers"),
    "words": (np.array([["a", "b"], ["c", "d"]]), "not numbers"),
    "records": (np.zeros((2, 2), [("a", "<f4")]), "not numbers"),
    "a scalar": (np.array(3.0), "needs 2 axes"),
    "no values": (np.zeros((0, 2)), "has no examples"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_any_kind_are_right_or_reported(tmp_path: Path, kind: str) -> None:
    array, words = KINDS[kind]
    np.savez(tmp_path / "x.npz", x=array, y=np.array([0, 2]))
    arrays = read_npz(str(tmp_path / "x.npz"), {"x", "y"})
    if words is None:
        assert check(arrays, GRAPH, "data").values["x"].tolist() == array.astype(float).tolist()
    else:
        assert words in message_of(lambda: check(arrays, GRAPH, "data"))


def test_lengths_beyond_their_axis_are_reported(tmp_path: Path) -> None:
    graph = modgraph.loads("model m() { input words: token[time, 5] x = words -> embedding(2) -> mean output x }").ir
    words = np.ones((2, 3), np.int64)
    for lengths, wrong in (([3, 0], None), ([4, 1], "1 to 4"), ([-1, 2], "-1 to 2")):
        np.savez(tmp_path / "x.npz", words=words, time_length=np.array(lengths))
        checking = partial(check, read_npz(str(tmp_path / "x.npz"), {"words", "time_length"}), graph, "data")
        if wrong is None:
            checking()
        else:
            assert f"holds {wrong}; lengths along it are 0 to 3" in message_of(checking)
    np.savez(tmp_path / "x.npz", words=words[:, :0])
    arrays = read_npz(str(tmp_path / "x.npz"), {"words"})
    assert "without values" in message_of(lambda: check(arrays, graph, "data"))


# ---------------------------------------------------------------- weights and words


def test_tensors_that_are_packed_are_reported(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    torch.save({"a": torch.zeros(1000)}, buffer)
    with zipfile.ZipFile(buffer) as whole:
        members = [(name, whole.read(name)) for name in whole.namelist()]
    path = archive(tmp_path / "x.pt", *members, method=zipfile.ZIP_DEFLATED)
    assert "compressed, which torch does not do" in message_of(lambda: open_tensors(path))


def test_a_vocabulary_of_half_letters_is_reported(tmp_path: Path) -> None:
    (tmp_path / "v.json").write_text('["<unk>", "\\ud800"]')
    assert "a surrogate" in message_of(lambda: Vocabulary.read(str(tmp_path / "v.json")))
