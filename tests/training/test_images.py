"""Images as data: CIFAR-10's binary files, and digits in the size of a spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import modgraph
from modgraph.data import Cifar10, Digits
from modgraph.diagnostics import ModgraphError
from modgraph.training.stored_run import load_run
from tests.small_runs import begin

SPEC = """
model images(channels=3, size=32) {
  input  image: float[channels, size, size]
  target label: class[10]
  logits = image -> avg_pool(4) -> flatten -> linear(10)
  output logits
  loss cross_entropy(logits, label)
}
"""
GRAPH = modgraph.loads(SPEC).ir
NAMES = [*(f"data_batch_{batch}" for batch in range(1, 6)), "test_batch"]
RNG = np.random.default_rng(0)


@pytest.fixture
def folder(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """Files as CIFAR-10 has them, of seven images each, and what is in them."""
    made = {}
    for name in NAMES:
        pixels, labels = RNG.integers(0, 256, (7, 3, 32, 32)), RNG.integers(0, 10, 7)
        records = [bytes([label]) + bytes(image.ravel().tolist()) for image, label in zip(pixels, labels, strict=True)]
        (tmp_path / f"{name}.bin").write_bytes(b"".join(records))
        made[name] = pixels, labels
    return tmp_path, made


@pytest.mark.parametrize("limit", [None, 10])
def test_the_files_of_cifar10_are_read(folder: tuple[Path, dict[str, Any]], limit: int | None) -> None:
    path, made = folder
    splits = Cifar10(folder=str(path), limit=limit).splits(GRAPH)
    names = {"train": NAMES[:5], "test": NAMES[5:]}
    for split, arrays in splits.items():
        count = limit if split == "train" else None
        pixels, labels = (np.concatenate([made[name][part] for name in names[split]])[:count] for part in (0, 1))
        assert arrays.values["label"].tolist() == labels.tolist()
        for channel, (mean, deviation) in enumerate([(0.4914, 0.2470), (0.4822, 0.2435), (0.4465, 0.2616)]):
            expected = (pixels[:, channel] / 255 - mean) / deviation
            np.testing.assert_allclose(arrays.values["image"][:, channel], expected, atol=1e-5)


FILES = {
    "missing": (None, "no such file"),
    "empty": (b"", "0 bytes"),
    "truncated": (bytes(3073 * 2 - 1), "6145 bytes"),
    "foreign": (b"\x89PNG" * 3073, "image 0 has the label 137"),
    "of CIFAR-100": (bytes(3073) + bytes([11]) + bytes(3072), "image 1 has the label 11"),
}


@pytest.mark.parametrize("mistake", FILES)
@pytest.mark.parametrize("name", ["data_batch_3.bin", "test_batch.bin"])
def test_files_that_are_not_of_cifar10_are_reported_by_name(
    folder: tuple[Path, dict[str, Any]], mistake: str, name: str
) -> None:
    content, words = FILES[mistake]
    (folder[0] / name).unlink()
    if content is not None:
        (folder[0] / name).write_bytes(content)
    with pytest.raises(ModgraphError) as caught:
        Cifar10(folder=str(folder[0])).splits(GRAPH)
    (printed,) = caught.value.diagnostics
    assert printed.code == "MG510"
    assert name in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize(("channels", "size"), [(3, 32), (1, 8), (1, 16)])
def test_digits_come_in_the_size_of_the_spec(channels: int, size: int) -> None:
    from sklearn.datasets import load_digits

    splits = Digits(test_fraction=0.25).splits(modgraph.loads(SPEC, channels=channels, size=size).ir)
    images = np.concatenate([splits[split].values["image"] for split in ("train", "test")])
    labels = np.concatenate([splits[split].values["label"] for split in ("train", "test")])
    assert images.shape == (1797, channels, size, size)
    assert (images == images[:, :1]).all()
    assert np.bincount(labels).tolist() == np.bincount(load_digits().target).tolist()
    averages = [images[labels == digit].mean() for digit in range(10)]
    source = [load_digits().images[load_digits().target == digit].mean() / 16 for digit in range(10)]
    np.testing.assert_allclose(averages, source, atol=0.01)
    assert len(splits["test"]) == 449


def test_a_spec_for_other_images_is_reported() -> None:
    for text in (SPEC.replace("[channels, size, size]", "[2, 8, 8]"), SPEC.replace("image", "picture")):
        with pytest.raises(ModgraphError) as caught:
            Digits().splits(modgraph.loads(text).ir)
        assert {each.code for each in caught.value.diagnostics} == {"MG511"}


@pytest.mark.parametrize("data", ["digits, limit: 300", "cifar10, folder: {folder}"])
def test_a_spec_trains_on_them(folder: tuple[Path, dict[str, Any]], tmp_path: Path, data: str) -> None:
    (tmp_path / "images.mod").write_text(SPEC)
    recipe = (
        f"data: {{{{name: {data}}}}}\ntrain: {{{{epochs: 8, batch: 10, optimizer: {{{{name: adam, lr: 0.01}}}}}}}}\n"
    )
    (tmp_path / "images.yaml").write_text(recipe.format(folder=folder[0]))
    metrics = begin(tmp_path / "images.mod", tmp_path / "run")
    assert len(load_run(tmp_path / "run").description()["classes"]["label"]) == 10
    assert metrics["test.accuracy"] > 0.5 or "cifar" in data
