"""Images from the user's disk: CIFAR-100's binary files, Fashion-MNIST's IDX files, folders of classes."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import modgraph
from modgraph.data import Cifar100, ClassFolders, DataSet, FashionMnist
from modgraph.data.cifar import COARSE, FINE
from modgraph.data.fingerprint import Fingerprint
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph

RNG = np.random.default_rng(0)


def graph(channels: int, size: int, classes: int) -> Graph:
    shape = f"float[{channels}, {size}, {size}]"
    return modgraph.loads(f"model m() {{ input image: {shape} target label: class[{classes}] output image }}").ir


def message_of(action: Callable[[], object], code: str) -> str:
    with pytest.raises(ModgraphError) as caught:
        action()
    assert {each.code for each in caught.value.diagnostics} == {code}
    return str(caught.value)


# ---------------------------------------------------------------- CIFAR-100


@pytest.fixture
def cifar(tmp_path: Path) -> Path:
    for name in ("train", "test"):
        coarse, fine = RNG.integers(0, 20, 7), RNG.integers(0, 100, 7)
        pixels = RNG.integers(0, 256, (7, 3072))
        records = np.column_stack([coarse, fine, pixels]).astype(np.uint8)
        (tmp_path / f"{name}.bin").write_bytes(records.tobytes())
    return tmp_path


def raw(folder: Path, name: str) -> np.ndarray:
    return np.fromfile(folder / f"{name}.bin", np.uint8).reshape(7, 3074)


def test_the_files_of_cifar100_are_read(cifar: Path) -> None:
    data = Cifar100(folder=str(cifar), limit=5, mean=(0.5, 0.4, 0.3), deviation=(0.5, 0.2, 0.1))
    splits = data.splits(graph(3, 32, 100))
    for name, count in (("train", 5), ("test", 7)):
        records, arrays = raw(cifar, name)[:count], splits[name]
        assert arrays.values["label"].tolist() == records[:, 1].tolist()
        assert arrays.groups["superclass"].tolist() == [COARSE[each] for each in records[:, 0]]
        read = arrays.read(slice(None))["image"]
        pixels = records[:, 2:].reshape(-1, 3, 32, 32) / 255
        for channel, (mean, deviation) in enumerate(zip(data.mean, data.deviation, strict=True)):
            np.testing.assert_allclose(read[:, channel], (pixels[:, channel] - mean) / deviation, atol=1e-5)
    assert data.description()["classes"]["label"] == list(FINE)


def test_cifar100_has_coarse_labels_and_comes_in_the_size_of_the_spec(cifar: Path) -> None:
    data = Cifar100(folder=str(cifar), labels="coarse", mean=(0.0,) * 3, deviation=(1.0,) * 3)
    arrays = data.splits(graph(3, 64, 20))["test"]
    assert arrays.values["label"].tolist() == raw(cifar, "test")[:, 0].tolist()
    (image,) = arrays.read(np.array([3]))["image"]
    colours = raw(cifar, "test")[3, 2:].reshape(3, 32, 32).transpose(1, 2, 0)
    expected = np.asarray(Image.fromarray(colours).resize((64, 64), Image.Resampling.BILINEAR)) / 255
    np.testing.assert_allclose(image.transpose(1, 2, 0), expected, atol=1.5 / 255)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (bytes(3073), "3073 bytes; images of CIFAR-100 have 3074 each, their labels included"),
        (bytes([20]) + bytes(3073), "image 0 has the label 20, and CIFAR-100 has 0 to 19"),
        (bytes(3074) + bytes([19, 100]) + bytes(3072), "image 1 has the label 100, and CIFAR-100 has 0 to 99"),
    ],
)
def test_files_that_are_not_of_cifar100_are_reported(cifar: Path, content: bytes, words: str) -> None:
    (cifar / "test.bin").write_bytes(content)
    message = message_of(lambda: Cifar100(folder=str(cifar)).splits(graph(3, 32, 100)), "MG510")
    assert words in message
    assert "cifar-100-binary.tar.gz" in message


# ---------------------------------------------------------------- Fashion-MNIST


def idx(array: np.ndarray) -> bytes:
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.fixture
def clothes(tmp_path: Path) -> dict[str, np.ndarray]:
    """The four files as Fashion-MNIST has them, of a few images each, some packed."""
    made = {}
    for part, count in (("train", 30), ("t10k", 12)):
        images = RNG.integers(0, 256, (count, 28, 28)).astype(np.uint8)
        labels = (np.arange(count) % 10).astype(np.uint8)
        (tmp_path / f"{part}-images-idx3-ubyte").write_bytes(idx(images))
        (tmp_path / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))
        made[part] = images
    return made


def test_fashion_mnist_is_read_packed_or_not(tmp_path: Path, clothes: dict[str, np.ndarray]) -> None:
    data = FashionMnist(folder=str(tmp_path), limit=25)
    splits = data.splits(graph(1, 28, 10))
    assert splits["train"].values["label"].tolist() == [*range(10), *range(10), *range(5)]
    for split, part in (("train", "train"), ("test", "t10k")):
        read = splits[split].read(slice(None))["image"][:, 0]
        np.testing.assert_allclose(read, clothes[part][: len(read)] / 255, atol=1e-6)
    grey = data.splits(graph(3, 14, 10))["test"].read(slice(2, 4))["image"]
    assert grey.shape == (2, 3, 14, 14)
    assert (grey == grey[:, :1]).all()
    assert len(data.description()["classes"]["label"]) == 10
    before = Fingerprint.compute(data, splits["test"])
    path = tmp_path / "t10k-images-idx3-ubyte"
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    assert Fingerprint.compute(data, data.splits(graph(1, 28, 10))["test"]) == before


def test_where_fashion_mnist_lies_is_reported(tmp_path: Path) -> None:
    message = message_of(lambda: FashionMnist(folder=str(tmp_path)).splits(graph(1, 28, 10)), "MG510")
    assert "dataset-fashion-mnist" in message
    assert "-s data.folder=DIR" in message


# ---------------------------------------------------------------- folders of classes


def painted(root: Path, names: str, count: int = 5) -> Path:
    for at, name in enumerate(names.split()):
        (root / name).mkdir(parents=True)
        for number in range(count):
            Image.new("RGB", (4, 4), (50 * at, 10 * number, 0)).save(root / name / f"{number}.png")
    return root


def test_folders_of_classes_are_split_class_by_class(tmp_path: Path) -> None:
    data = ClassFolders(train=str(painted(tmp_path / "photos", "ant bee cow")), mean=(0.0,) * 3, deviation=(1.0,) * 3)
    splits, again = (data.splits(graph(3, 4, 3)) for _ in range(2))
    seen = set()
    for split, each in (("train", 4), ("test", 1)):
        label, image = splits[split].values["label"], splits[split].read(slice(None))["image"]
        assert np.bincount(label).tolist() == [each] * 3
        np.testing.assert_allclose(image[:, 0, 0, 0], label * 50 / 255, atol=1e-6)
        seen |= {(int(kind), float(green)) for kind, green in zip(label, image[:, 1, 0, 0], strict=True)}
        assert again[split].values["label"].tolist() == label.tolist()
    assert len(seen) == 15
    assert data.description()["classes"]["label"] == ["ant", "bee", "cow"]


def test_folders_of_classes_may_have_a_test_of_their_own(tmp_path: Path) -> None:
    train, test = painted(tmp_path / "train", "ant bee"), painted(tmp_path / "test", "ant bee", count=2)
    splits = ClassFolders(train=str(train), test=str(test)).splits(graph(3, 4, 2))
    assert {split: len(arrays) for split, arrays in splits.items()} == {"train": 10, "test": 4}


def other_test(root: Path) -> DataSet:
    return ClassFolders(train=str(root / "photos"), test=str(painted(root / "other", "ant cow")))


FOLDERS: dict[str, tuple[Callable[[Path], DataSet], str, str]] = {
    "another class": (other_test, "MG519", 'no class "bee"'),
    "too few": (lambda root: ClassFolders(train=str(painted(root / "few", "ant bee", 1))), "MG519", "too few images"),
    "no folders": (lambda root: ClassFolders(train=str(root / "photos/ant")), "MG519", "folder/class/image"),
    "no such": (lambda root: ClassFolders(train=str(root / "nowhere")), "MG519", "no such file"),
    "three classes": (lambda root: ClassFolders(train=str(painted(root / "three", "a b c"))), "MG511", "-s classes=3"),
}


@pytest.mark.parametrize("kind", FOLDERS)
def test_folders_of_another_layout_are_reported(tmp_path: Path, kind: str) -> None:
    make, code, words = FOLDERS[kind]
    painted(tmp_path / "photos", "ant bee")
    assert words in message_of(lambda: make(tmp_path).splits(graph(3, 4, 2)), code)


def test_images_in_grey_are_the_luminance_of_their_colours(tmp_path: Path) -> None:
    data = ClassFolders(train=str(painted(tmp_path / "photos", "ant bee cow")), mean=(0.5,), deviation=(0.25,))
    arrays = data.splits(graph(1, 4, 3))["train"]
    image = arrays.read(slice(None))["image"]
    assert image.shape == (12, 1, 4, 4)
    for at, path in enumerate(arrays.on_disk["image"].paths):  # type: ignore[attr-defined]
        red, green, blue = Image.open(path).getpixel((0, 0))  # type: ignore[misc]
        expected = (0.299 * red + 0.587 * green + 0.114 * blue) / 255
        np.testing.assert_allclose(image[at], (expected - 0.5) / 0.25, atol=1e-5)
    how = data.description()["preprocessing"]["image"]
    assert (how["channels"], how["mean"], how["deviation"]) == ("grey", [0.5], [0.25])


def test_a_grey_input_asks_for_one_number_and_colours_for_three(tmp_path: Path) -> None:
    folder = str(painted(tmp_path / "photos", "ant bee cow"))
    message = message_of(lambda: ClassFolders(train=folder).splits(graph(1, 4, 3)), "MG511")
    assert "-s 'data.mean=[0.5]'" in message, message
    grey = ClassFolders(train=folder, mean=(0.5,), deviation=(0.5,))
    assert "float[1, HEIGHT, WIDTH]" in message_of(lambda: grey.splits(graph(3, 4, 3)), "MG511")
    assert ClassFolders(train=folder, mean=(0.5,)).contradiction(), "one mean and three deviations"
