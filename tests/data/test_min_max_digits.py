"""The min-max digit game: pairs, labels, splits, and digits of the user's own."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

import modgraph
from modgraph.data import MinMaxDigits
from modgraph.data.digits import TEST_PAIRS, TRAIN_PAIRS, label_of, load_digits, parse_pairs

GRAPH = modgraph.load("specs/smn.mod").ir


def test_train_and_test_pairs_are_all_unordered_pairs_once() -> None:
    train, test = (sorted(map(tuple, np.sort(parse_pairs(text)).tolist())) for text in (TRAIN_PAIRS, TEST_PAIRS))
    assert (len(train), len(test)) == (40, 15)
    assert sorted(train + test) == [(a, b) for a in range(10) for b in range(a, 10)]


@pytest.mark.parametrize(
    ("pair", "label"), [((4, 9), 4), ((0, 3), 3), ((4, 5), 5), ((4, 6), 4), ((0, 0), 0), ((9, 9), 9)]
)
def test_the_label_is_the_larger_digit_below_ten_and_else_the_smaller(pair: tuple[int, int], label: int) -> None:
    first, second = (np.array([digit]) for digit in pair)
    assert label_of(first, second) == label_of(second, first) == [label]


def test_splits_have_the_counts_asked_for_and_their_own_digit_images() -> None:
    splits = MinMaxDigits(train=400, in_distribution=80, per_test_pair=2).splits(GRAPH)
    assert {name: len(arrays) for name, arrays in splits.items()} == {
        "train": 400,
        "in_distribution": 80,
        "out_of_distribution": 30,
    }
    corners = {
        name: {canvas[0, :14, :14].tobytes() for canvas in arrays.values["image"]} for name, arrays in splits.items()
    }
    assert not corners["train"] & (corners["in_distribution"] | corners["out_of_distribution"])


def test_a_composition_is_two_digits_on_an_empty_canvas() -> None:
    image = MinMaxDigits(train=50).splits(GRAPH)["train"].values["image"]
    assert image.shape == (50, 1, 28, 28)
    assert image.min() >= 0
    assert image.max() <= 1
    assert not image[:, :, :14, 14:].any()
    assert not image[:, :, 14:, :14].any()
    assert image[:, :, :14, :14].any(axis=(1, 2, 3)).all()
    assert image[:, :, 14:, 14:].any(axis=(1, 2, 3)).all()


def test_compositions_are_a_function_of_the_seed() -> None:
    first, again, other = (MinMaxDigits(train=60, seed=seed).splits(GRAPH)["train"] for seed in (3, 3, 4))
    assert np.array_equal(first.values["image"], again.values["image"])
    assert not np.array_equal(first.values["image"], other.values["image"])


def write_idx(path: Path, array: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> str:
    content = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return str(path)


def mnist_like(folder: Path, suffix: str = "") -> dict[str, str]:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (200, 28, 28), dtype=np.uint8)
    labels = (np.arange(200) % 10).astype(np.uint8)
    return {
        "images": write_idx(folder / f"images{suffix}", images),
        "labels": write_idx(folder / f"labels{suffix}", labels),
    }


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_idx_files_of_the_user_are_read(tmp_path: Path, suffix: str) -> None:
    data = MinMaxDigits(source="idx", train=80, per_test_pair=1, in_distribution=40, **mnist_like(tmp_path, suffix))
    splits = data.splits(GRAPH)
    assert splits["train"].values["image"].shape == (80, 1, 28, 28)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no IDX file"),
        (b"\0\0\x08\x01\0\0\0\x08abcdefgh", "has 1 axes"),
        (b"PNG.............", "no IDX file"),
    ],
)
def test_files_that_are_no_idx_are_refused_with_their_name(tmp_path: Path, content: bytes, reason: str) -> None:
    files = mnist_like(tmp_path)
    Path(files["images"]).write_bytes(content)
    with pytest.raises(modgraph.ModgraphError, match=reason):
        MinMaxDigits(source="idx", **files).splits(GRAPH)


def test_a_truncated_idx_file_is_refused(tmp_path: Path) -> None:
    files = mnist_like(tmp_path)
    Path(files["images"]).write_bytes(Path(files["images"]).read_bytes()[:-1])
    with pytest.raises(modgraph.ModgraphError, match="bytes, but its header needs"):
        MinMaxDigits(source="idx", **files).splits(GRAPH)


def test_a_spec_that_names_its_input_otherwise_is_reported() -> None:
    graph = modgraph.loads("model m() { input picture: float[1, 28, 28] output picture }").ir
    with pytest.raises(modgraph.ModgraphError, match='no array "picture"'):
        MinMaxDigits(train=10).splits(graph)


def test_digits_are_those_that_scikit_learn_reads() -> None:
    from sklearn import datasets

    expected = datasets.load_digits()
    images, labels = load_digits((8, 8))
    assert np.array_equal(images, (expected.images / 16).astype(np.float32)), "in their own size they are not resized"
    assert np.array_equal(labels, expected.target)
