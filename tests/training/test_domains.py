"""Data of several domains: rotated digits, folders of images, and what a training by domain does with them."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

import modgraph
from modgraph.backends.torch import make_generator
from modgraph.cli import main
from modgraph.data import Arrays, ImageFolders, RotatedDigits
from modgraph.data.batches import RandomOrder
from modgraph.data.digits import ANGLES, rotate_images
from modgraph.data.images import ImageFiles, read_image
from modgraph.diagnostics import ModgraphError
from modgraph.training.reading import augment_images
from modgraph.training.recipe import with_validation
from modgraph.training.sections import Augment, Train
from modgraph.training.stored_run import load_run
from tests.small_runs import begin, go_on

DIGITS = modgraph.loads("model m() { input image: float[1, 16, 16] target label: class[10] output image }").ir
PHOTOS = modgraph.loads("model m() { input image: float[3, 6, 8] target label: class[2] output image }").ir

# ---------------------------------------------------------------- rotated digits


def test_domains_are_disjoint_sixths_and_the_test_domain_is_tested_on() -> None:
    whole = RotatedDigits(held_out=()).splits(DIGITS)["train"]
    splits = RotatedDigits(held_out=(30, 0)).splits(DIGITS)
    assert Counter(whole.groups["domain"].tolist()) == {str(angle): 300 if angle < 45 else 299 for angle in ANGLES}
    assert set(splits["train"].groups["domain"]) == {"15", "45", "60", "75"}
    assert set(splits["held_out"].groups["domain"]) == {"0", "30"}
    assert len(splits["train"]) + len(splits["held_out"]) == len(whole) == 1797
    assert Counter(whole.values["label"].tolist()) == Counter(digits().target.tolist())
    upright = RotatedDigits(held_out=0).splits(small_digits())["held_out"].values["image"] * 16
    assert {image.tobytes() for image in upright.round().astype(np.int64)} <= {
        image.tobytes() for image in digits().images.astype(np.int64)
    }


def digits() -> Any:
    from sklearn.datasets import load_digits

    return load_digits()


def small_digits() -> Any:
    return modgraph.load("specs/gmoe_digits.mod", size=8, patch=2).ir


@pytest.mark.parametrize("angle", [0, 15, 45, 75, 90])
def test_images_rotate_as_those_of_domainbed(angle: int) -> None:
    """DomainBed turns by torchvision, that is by Pillow: counter-clockwise, bilinear, the corners black."""
    images = np.kron(digits().images[:20] / 16, np.ones((2, 2))).astype(np.float32)
    found = rotate_images(images, angle)
    for image, turned in zip(images, found, strict=True):
        expected = np.asarray(Image.fromarray(image).rotate(angle, Image.Resampling.BILINEAR))
        inside = (slice(4, 12), slice(4, 12))
        np.testing.assert_allclose(turned[inside], expected[inside], atol=1e-4)


def test_rotated_digits_are_a_function_of_the_seed() -> None:
    first, again, other = (RotatedDigits(seed=seed).splits(DIGITS)["held_out"] for seed in (1, 1, 2))
    assert np.array_equal(first.values["image"], again.values["image"])
    assert not np.array_equal(first.values["label"], other.values["label"])


def test_test_domains_are_known_ones() -> None:
    assert "holds out 10" in str(RotatedDigits(held_out=10).contradiction())
    assert "every domain" in str(RotatedDigits(held_out=ANGLES).contradiction())
    with pytest.raises(ModgraphError, match="float\\[3, 6, 8\\]"):
        RotatedDigits().splits(PHOTOS)


# ---------------------------------------------------------------- folders of images


def painted(path: Path, colour: tuple[int, int, int], size: tuple[int, int] = (8, 6)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(path)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Three domains of two classes, three images each: red dogs and blue cats, darker from domain to domain."""
    root = tmp_path / "photos"
    for at, domain in enumerate(("art", "photo", "sketch")):
        for i in range(3):
            painted(root / domain / "dog" / f"{i}.jpg", (250 - 80 * at, 0, 10 * i), (16, 12))
            painted(root / domain / "cat" / f"{i}.PNG", (0, 10 * i, 250 - 80 * at))
    (root / "art" / "dog" / "notes.txt").write_text("not an image")
    (root / ".cache").mkdir()
    return root


def test_folders_are_domains_and_classes(photos: Path) -> None:
    data = ImageFolders(root=str(photos), held_out="sketch")
    splits = data.splits(PHOTOS)
    train, test = splits["train"], splits["held_out"]
    assert (len(train), len(test)) == (12, 6)
    assert Counter(train.groups["domain"].tolist()) == {"art": 6, "photo": 6}
    files = test.on_disk["image"]
    assert isinstance(files, ImageFiles)
    test = test.take(np.argsort(files.paths))
    assert test.values["label"].tolist() == [0, 0, 0, 1, 1, 1]
    assert data.description()["classes"] == {"label": ["cat", "dog"]}
    images = test.read(slice(None))["image"]
    assert images.shape == (6, 3, 6, 8)
    mean, deviation = np.array(data.mean), np.array(data.deviation)
    expected = (np.array([0, 10, 90]) / 255 - mean) / deviation
    np.testing.assert_allclose(images[1].transpose(1, 2, 0), np.broadcast_to(expected, (6, 8, 3)), atol=1e-6)
    np.testing.assert_array_equal(test.take(np.array([4, 1])).read(slice(None))["image"], images[[4, 1]])
    np.testing.assert_array_equal(test.read(np.array([5, 0]))["image"], images[[5, 0]])


def test_an_image_is_read_as_pillow_does_in_any_mode(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (9, 7), dtype=np.uint8)
    for mode in ("L", "P", "RGBA", "1", "LA", "CMYK"):
        path = tmp_path / f"{mode}.{'jpg' if mode == 'CMYK' else 'png'}"
        Image.fromarray(noise).convert(mode).save(path)
        image = Image.open(path).convert("RGB").resize((8, 6), Image.Resampling.BILINEAR)
        np.testing.assert_allclose(read_image(str(path), 6, 8), np.asarray(image).transpose(2, 0, 1) / 255, atol=1e-6)


def without(folder: Path) -> None:
    for each in folder.iterdir():
        each.unlink()


def empty(folder: Path) -> None:
    without(folder / "dog")
    without(folder / "cat")
    (folder / "dog").rmdir()
    (folder / "cat").rmdir()


LAYOUTS: dict[str, tuple[Any, dict[str, Any], str, str]] = {
    "no root": (lambda root: None, {"root": "nowhere"}, "MG519", "no such file"),
    "root of nothing": (lambda root: None, {"root": "."}, "MG519", ""),
    "a domain as root": (lambda root: None, {"root": "photos/art"}, "MG519", "it has no folder for each class"),
    "empty domain": (lambda root: empty(root / "photo"), {}, "MG519", "no folder for each class"),
    "empty class": (lambda root: without(root / "photo/dog"), {}, "MG519", "it has no image"),
    "another class": (lambda root: painted(root / "art/cow/1.png", (0, 0, 0)), {}, "MG519", 'has no class "cow"'),
    "a file as domain": (lambda root: None, {"root": "photos/art/dog/0.jpg"}, "MG519", "not a directory"),
    "held out": (lambda root: None, {"held_out": "skech"}, "MG519", 'did you mean "sketch"'),
    "all held out": (lambda root: None, {"held_out": ("art", "photo", "sketch")}, "MG519", "every domain"),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_wrong_layout_is_reported(photos: Path, monkeypatch: pytest.MonkeyPatch, layout: str) -> None:
    change, keys, code, words = LAYOUTS[layout]
    monkeypatch.chdir(photos.parent)
    change(photos)
    with pytest.raises(ModgraphError) as caught:
        ImageFolders(**{"root": "photos", **keys}).splits(PHOTOS)
    (printed,) = caught.value.diagnostics
    assert printed.code == code
    assert words in printed.text() + printed.advice()


def test_classes_that_the_spec_does_not_have_are_reported(photos: Path) -> None:
    graph = modgraph.loads("model m() { input image: float[3, 6, 8] target label: class[9] output image }").ir
    with pytest.raises(ModgraphError, match="-s classes=2"):
        ImageFolders(root=str(photos)).splits(graph)


def jpeg() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (64, 64), (200, 10, 10)).save(buffer, "JPEG")
    return buffer.getvalue()


@pytest.mark.parametrize("content", [b"", b"text", jpeg()[:300], b"\x89PNG\r\n\x1a\n" + bytes(40)])
def test_an_image_that_cannot_be_read_is_named(photos: Path, content: bytes) -> None:
    (photos / "art/dog/1.jpg").write_bytes(content)
    train = ImageFolders(root=str(photos)).splits(PHOTOS)["train"]
    with pytest.raises(ModgraphError) as caught:
        train.read(slice(None))
    (printed,) = caught.value.diagnostics
    assert printed.code == "MG510"
    assert "art/dog/1.jpg" in printed.text()


# ---------------------------------------------------------------- groups


def grouped(sizes: dict[str, int]) -> Arrays:
    words = np.concatenate([np.full(count, name) for name, count in sizes.items()])
    return Arrays({"x": np.arange(len(words))}, {"domain": words})


def test_each_step_has_as_many_examples_of_each_domain() -> None:
    arrays = grouped({"a": 30, "b": 7, "c": 12})
    order = RandomOrder(arrays, batch=4, by="domain")
    steps = list(order.draw(0, 0))
    assert len(steps) == order.steps == 5  # 49 examples, 12 a step
    for places in steps:
        assert Counter(arrays.groups["domain"][places.numpy()].tolist()) == {"a": 4, "b": 4, "c": 4}
    seen = Counter(torch.cat(steps).tolist())
    assert max(seen[place] for place in range(30)) == 1
    assert {seen[place] for place in range(30, 37)} == {2, 3}


def test_an_epoch_of_so_many_steps_begins_anew_where_the_data_ends() -> None:
    arrays = grouped({"a": 10})
    steps = list(RandomOrder(arrays, batch=4, steps=6).draw(0, 0))
    assert [len(each) for each in steps] == [4] * 6
    assert set(Counter(torch.cat(steps).tolist()).values()) == {2, 3}
    one_pass = list(RandomOrder(arrays, batch=4).draw(0, 0))
    assert [len(each) for each in one_pass] == [4, 4, 2]
    expected = torch.randperm(10, generator=make_generator(0, "order", 0))
    assert torch.cat(one_pass).equal(expected)


def test_validation_is_a_share_of_each_domain() -> None:
    splits = with_validation({"train": grouped({"a": 100, "b": 20})}, Train(validation=0.1, by="domain"))
    assert Counter(splits["validation"].groups["domain"].tolist()) == {"a": 10, "b": 2}
    both = np.concatenate([splits["train"].values["x"], splits["validation"].values["x"]])
    assert sorted(both) == list(range(120))
    with pytest.raises(ModgraphError, match="too few"):
        with_validation({"train": grouped({"a": 100, "b": 1})}, Train(validation=0.1, by="domain"))


SPEC = """
model net(classes=10) {
  input  image: float[1, 16, 16]
  target label: class[classes]
  logits = image -> flatten -> linear(32) -> relu -> linear(classes)
  output logits
  loss cross_entropy(logits, label)
}
"""
RECIPE = """
data: {name: rotated_digits, held_out: [0, 75], images: 600}
train:
  epochs: 3
  batch: 10
  by: domain
  validation: 0.2
  best: validation.domain.accuracy
  optimizer: {name: adam, lr: 0.01}
  augment: {image: {shift: 0.1, crop: 0.8}}
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "net.mod").write_text(SPEC)
    (tmp_path / "net.yaml").write_text(RECIPE)
    return tmp_path / "net.mod"


def test_metrics_are_reported_by_domain_and_the_best_epoch_is_that_of_their_mean(spec: Path, tmp_path: Path) -> None:
    metrics = begin(spec, tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    validation = [each for each in lines if each["split"] == "validation"]
    for line in validation:
        domains = [line[f"domain.{angle}.accuracy"] for angle in (15, 30, 45, 60)]
        assert line["domain.accuracy"] == pytest.approx(np.mean(domains))
    best = max(each["domain.accuracy"] for each in validation)
    assert metrics["validation.domain.accuracy"] == best
    assert metrics["best_step"] == next(each["step"] for each in validation if each["domain.accuracy"] == best)
    run = load_run(tmp_path / "run")
    arrays = run.test_data()["held_out"]
    right = run.model()(torch.from_numpy(arrays.values["image"])).argmax(-1).numpy() == arrays.values["label"]
    for angle in ("0", "75"):
        share = right[arrays.groups["domain"] == angle].mean()
        assert metrics[f"held_out.domain.{angle}.accuracy"] == pytest.approx(share)


def test_eval_reports_every_domain(spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    metrics = begin(spec, tmp_path / "run", train__epochs=1)
    capsys.readouterr()
    assert main(["eval", str(tmp_path / "run"), "--detail", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {name: found[name] for name in metrics if name.startswith("held_out.")} == pytest.approx(
        {name: value for name, value in metrics.items() if name.startswith("held_out.")}
    )
    assert found["held_out.accuracy_by_domain"]["75"] == pytest.approx(metrics["held_out.domain.75.accuracy"])
    bundle = str(tmp_path / "run.onnx")
    assert main(["export", str(tmp_path / "run"), "-o", bundle]) == 0
    capsys.readouterr()
    assert main(["eval", str(tmp_path / "run"), "--detail", "--json", "--bundle", bundle]) == 0
    of_bundle = json.loads(capsys.readouterr().out)
    assert of_bundle == {name: value for name, value in found.items() if name != "held_out.total_loss"}


def test_a_training_by_domain_that_was_interrupted_equals_one_that_was_not(spec: Path, tmp_path: Path) -> None:
    options = {"train__checkpoint_every": 3, "train__keep": 99, "train__steps_per_epoch": 7}
    whole = begin(spec, tmp_path / "whole", **options)
    begin(spec, tmp_path / "cut", **options)
    for file in (tmp_path / "cut/checkpoints").iterdir():
        if int(file.stem.removeprefix("step-")) > 10:
            file.unlink()
    assert go_on(tmp_path / "cut") == whole
    same = [(tmp_path / run / "checkpoints/step-00000021.safetensors").read_bytes() for run in ("whole", "cut")]
    assert same[0] == same[1]


def test_a_training_on_folders_reads_what_it_needs(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "photos.mod"
    spec.write_text(SPEC.replace("[1, 16, 16]", "[3, 6, 8]"))
    train = "{epochs: 12, batch: 2, by: domain, validation: 0.3, optimizer: {name: adam, lr: 0.01}}"
    spec.with_suffix(".yaml").write_text(
        f"model: {{classes: 2}}\ndata: {{name: image_folders, root: {photos}, held_out: sketch}}\ntrain: {train}\n"
    )
    metrics = begin(spec, tmp_path / "run")
    assert metrics["held_out.domain.sketch.accuracy"] == 1
    assert main(["export", str(tmp_path / "run"), "-o", str(tmp_path / "m.onnx")]) == 0
    capsys.readouterr()
    assert main(["eval", str(tmp_path / "run"), "--detail", "--bundle", str(tmp_path / "m.onnx")]) == 0
    matrix = capsys.readouterr().out.partition("true class by row")[2].splitlines()[1:4]
    assert [line.split()[0] for line in matrix[1:]] == matrix[0].split() == ["cat", "dog"]


MISTAKES = {
    "train__by=domains": "MG517",
    "train__by=domains train__validation=0.0": "MG517",
    "train__best=validation.domain.75.accuracy": "MG514",
    "train__best=validation.domain.acuracy": "MG514",
    "train__augment__images__shift=0.1": "MG518",
    "train__augment__image__shift=0.6": "MG504",
    "data__held_out=10": "MG504",
    "data__held_out=sketch": "MG504",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_reported_before_a_run_is_made(spec: Path, tmp_path: Path, mistake: str) -> None:
    overrides = {key: number(value) for key, _, value in (each.partition("=") for each in mistake.split())}
    with pytest.raises(ModgraphError) as caught:
        begin(spec, tmp_path / "run", **overrides)
    assert caught.value.diagnostics[0].code == MISTAKES[mistake]
    assert not (tmp_path / "run/run.json").exists()


def number(text: str) -> Any:
    return int(text) if text.isdigit() else float(text) if text[0].isdigit() else text


# ---------------------------------------------------------------- images moved at random


def windows(augment: Augment, rows: int = 500) -> NDArray[Any]:
    """Where each pixel of a moved image was, x and y from −1 to 1, and 1 if it was in the image: [B, 3, 32, 32]."""
    line = (torch.arange(32) + 0.5) / 16 - 1
    image = torch.stack([line.expand(32, 32), line[:, None].expand(32, 32), torch.ones(32, 32)])
    noise = torch.rand(rows, 6, generator=torch.Generator().manual_seed(0))
    return augment_images({"image": image.repeat(rows, 1, 1, 1)}, {"image": augment}, noise)["image"].numpy()


def test_a_crop_is_a_window_of_at_least_its_share_within_the_image() -> None:
    x, y, seen = (windows(Augment(crop=0.5))[:, at, 1:-1, 1:-1] for at in range(3))
    sides = (x[:, 0, -1] - x[:, 0, 0]) / (2 * 29 / 32)
    np.testing.assert_allclose(sides, (y[:, -1, 0] - y[:, 0, 0]) / (2 * 29 / 32), atol=1e-4)
    assert 0.5 <= (sides**2).min() < 0.52
    assert 0.98 < (sides**2).max() <= 1.0001
    assert seen.min() > 0.999


def test_a_shift_moves_by_at_most_its_share_and_leaves_black() -> None:
    moved = windows(Augment(shift=0.25))
    middle = moved[:, :2, 15:17, 15:17].mean((2, 3))
    assert 0.48 < np.abs(middle).max() <= 0.5001
    assert (moved[:, 2].min((1, 2)) < 0.01).mean() > 0.9


def test_a_flip_mirrors_every_other_image() -> None:
    x = windows(Augment(flip=True))[:, 0, 8]
    plain = (np.arange(32) + 0.5) / 16 - 1
    mirrored = x[:, 0] > 0
    np.testing.assert_allclose(x[~mirrored], np.broadcast_to(plain, x[~mirrored].shape), atol=1e-5)
    np.testing.assert_allclose(x[mirrored], np.broadcast_to(plain[::-1], x[mirrored].shape), atol=1e-5)
    assert 0.4 < mirrored.mean() < 0.6


def test_nothing_moves_by_default() -> None:
    moved = windows(Augment(), rows=3)
    np.testing.assert_allclose(moved[0, 0, 0], (np.arange(32) + 0.5) / 16 - 1, atol=1e-6)
