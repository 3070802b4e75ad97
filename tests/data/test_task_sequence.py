"""Sequences of tasks: who gets which examples under which label, what shifts do, and what is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy.ndimage import rotate

import modgraph
from modgraph.cli import main
from modgraph.data import Arrays, ClassFolders, Digits, Npz, TaskSequence
from modgraph.data.batches import list_indices_by_group
from modgraph.data.fingerprint import Fingerprint
from modgraph.data.shifts import Inverted, Noisy, Rotated, Shift
from modgraph.data.task_sequence import TaskOfSequence
from modgraph.diagnostics import ModgraphError
from modgraph.training.recipe import read_recipe, with_validation
from modgraph.training.sections import Train
from modgraph.training.stored_run import load_run
from tests.ordinary_run import some_examples
from tests.small_runs import begin

GRAPH = modgraph.loads("model m() { input image: float[1, 8, 8] target label: class[6] output image }").ir
COLOUR = modgraph.loads("model m() { input image: float[3, 4, 6] target label: class[4] output image }").ir
DIGITS = Digits(limit=400)


def task(*classes: int | str, shift: Shift | None = None) -> TaskOfSequence:
    return TaskOfSequence(classes=classes) if shift is None else TaskOfSequence(classes=classes, shift=shift)


def sequence(**tasks: TaskOfSequence) -> TaskSequence:
    return TaskSequence(of=DIGITS, tasks=tasks)


def rows(images: Any) -> list[bytes]:
    return sorted(image.tobytes() for image in np.asarray(images, np.float32))


def of_class(split: str, digit: int) -> Any:
    arrays = DIGITS.splits(GRAPH_OF_TEN)[split]
    return arrays.values["image"][arrays.values["label"] == digit]


GRAPH_OF_TEN = modgraph.loads("model m() { input image: float[1, 8, 8] target label: class[10] output image }").ir

# ---------------------------------------------------------------- dealing


def test_classes_are_dealt_in_order_and_numbered_as_they_appear() -> None:
    data = sequence(warm=task(7, 2), cold=task(0), after=task(7, 9, shift=Inverted()))
    taken = {"warm": [7, 2], "cold": [0], "after": [7, 9]}
    for split, arrays in data.splits(GRAPH).items():
        assert arrays.names_of_groups("task") == list(taken)
        images = arrays.read(slice(None))["image"]
        label = 0
        for name, digits in taken.items():
            for digit in digits:
                mine = images[(arrays.values["label"] == label) & (arrays.groups["task"] == name)]
                expected = of_class(split, digit)
                assert rows(mine) == rows(1 - expected if name == "after" else expected)
                label += 1
        assert len(arrays) == sum(len(of_class(split, digit)) for digits in taken.values() for digit in digits)
    assert data.description()["classes"]["label"] == ["7", "2", "0", "7 (inverted)", "9 (inverted)"]


@some_examples(25)
@given(
    st.integers(1, 6),
    st.sampled_from(["random", "given"]),
    st.integers(0, 3),
    st.permutations(range(10)).map(lambda x: x[:6]),
)
def test_so_many_classes_for_each_task(size: int, order: str, seed: int, classes: list[int]) -> None:
    data = TaskSequence(of=DIGITS, classes_per_task=size, order=order, seed=seed, classes=tuple(classes))
    arrays = data.splits(GRAPH)["train"]
    names = arrays.names_of_groups("task")
    assert names == [str(at + 1) for at in range(-(-6 // size))]
    labels = [np.unique(arrays.values["label"][arrays.groups["task"] == name]).tolist() for name in names]
    assert labels == [list(range(6))[start : start + size] for start in range(0, 6, size)]
    found = [int(word) for word in data.description()["classes"]["label"]]
    assert sorted(found) == sorted(classes)
    assert order == "random" or found == classes


def test_groups_keep_the_order_of_tasks_wherever_they_are_reported() -> None:
    arrays = sequence(z=task(1), a=task(2), m=task(3)).splits(GRAPH)["train"]
    words = arrays.groups["task"]
    assert [set(words[indices]) for indices in list_indices_by_group(arrays, "task")] == [{"z"}, {"a"}, {"m"}]
    assert arrays.take(np.flatnonzero(words != "a")).names_of_groups("task") == ["z", "m"]
    split = with_validation({"train": arrays}, Train(validation=0.3, by="task"))
    assert all(each.names_of_groups("task") == ["z", "a", "m"] for each in split.values())
    other = Arrays(arrays.values, arrays.groups, orders={"task": ("a", "m", "z")})
    assert Fingerprint.compute(DIGITS, arrays) != Fingerprint.compute(DIGITS, other)


def test_few_of_each_class_are_learnt_from_and_all_measured() -> None:
    splits = TaskSequence(of=DIGITS, tasks={"a": task(3, 4)}, per_class=5).splits(GRAPH)
    assert np.bincount(splits["train"].values["label"]).tolist() == [5, 5]
    assert len(splits["test"]) == len(of_class("test", 3)) + len(of_class("test", 4))


# ---------------------------------------------------------------- shifts


def shifted(shift: Shift, light: Any) -> Any:
    return shift.apply(np.asarray(light, np.float32), np.arange(2 * len(light)).reshape(-1, 2))


LIGHT = np.random.default_rng(1).random((4, 3, 9, 9), np.float32)


@pytest.mark.parametrize("angle", [-30.0, 45.0, 90.0])
def test_images_rotate_as_pillow_rotates_them(angle: float) -> None:
    for image, found in zip(LIGHT, shifted(Rotated(angle=angle), LIGHT), strict=True):
        for plane, turned in zip(image, found, strict=True):
            expected = np.asarray(Image.fromarray(plane).rotate(angle, Image.Resampling.BILINEAR))
            np.testing.assert_allclose(turned[2:-2, 2:-2], expected[2:-2, 2:-2], atol=1e-4)


@given(st.integers(1, 7), st.integers(1, 7), st.floats(-400, 400))
def test_images_rotate_as_scipy_rotates_them_whatever_their_size(height: int, width: int, angle: float) -> None:
    images = np.random.default_rng(0).random((2, 2, height, width), np.float32)
    expected = rotate(images.astype(np.float64), angle, axes=(3, 2), reshape=False, order=1)
    far = np.abs(shifted(Rotated(angle=angle), images) - expected) > 1e-5
    places = np.argwhere(far.any((0, 1)))
    edge = [abs(v - b) < 1e-5 for p in places for v, b in _sources(p, height, width, angle)]
    assert not far.any() or any(edge)  # a place on the very edge is in or out by its last bit


def _sources(place: Any, height: int, width: int, angle: float) -> list[tuple[float, float]]:
    """The place that a pixel comes from, each coordinate with both ends of its axis."""
    middle = np.array([height - 1, width - 1]) / 2
    row, column = place - middle
    c, s = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    source = (c * row + s * column + middle[0], -s * row + c * column + middle[1])
    return [(v, b) for v, n in zip(source, (height, width), strict=True) for b in (0, n - 1)]


def test_a_rotation_by_a_quarter_moves_pixels_as_they_are() -> None:
    assert np.array_equal(shifted(Rotated(), LIGHT), np.rot90(LIGHT, axes=(2, 3)))
    assert np.array_equal(shifted(Rotated(angle=-180.0), LIGHT), LIGHT[:, :, ::-1, ::-1])


def test_labels_of_a_growing_axis_of_classes_are_not_bounded() -> None:
    text = "model m() { input image: float[1, 8, 8] target label: class[kind=2] output image }"
    splits = sequence(a=task(1, 2), b=task(3, 4), c=task(5)).splits(modgraph.loads(text).ir)
    assert splits["train"].values["label"].max() == 4


def test_noise_is_a_function_of_seed_and_example() -> None:
    noisy = Noisy(deviation=0.1)
    light = np.full((2000, 1, 4, 4), 0.5, np.float32)
    found = shifted(noisy, light)
    assert 0.098 < found.std() < 0.102
    assert len({image.tobytes() for image in found}) == 2000
    assert np.array_equal(found, shifted(noisy, light))
    assert not np.array_equal(found, shifted(Noisy(deviation=0.1, seed=1), light))
    loud = shifted(Noisy(deviation=5.0), light)
    assert (loud.min(), loud.max()) == (0, 1)


def test_an_image_has_its_noise_in_whatever_order_it_is_read() -> None:
    arrays = sequence(a=task(1), b=task(1, 2, shift=Noisy())).splits(GRAPH)["train"]
    whole = arrays.read(slice(None))["image"]
    sample = np.random.default_rng(0).permutation(len(arrays))[:20]
    assert np.array_equal(arrays.read(sample)["image"], whole[sample])
    assert np.array_equal(arrays.take(sample).read(slice(5, 9))["image"], whole[sample[5:9]])


def test_shifts_are_done_in_light_whatever_the_scale_and_read_from_disk(tmp_path: Path) -> None:
    for kind, colour in (("ant", (255, 0, 51)), ("bee", (0, 102, 0))):
        (tmp_path / kind).mkdir()
        for number in range(4):
            Image.new("RGB", (6, 4), colour).save(tmp_path / kind / f"{number}.png")
    inner = ClassFolders(train=str(tmp_path))
    data = TaskSequence(of=inner, tasks={"a": task("bee"), "b": task("ant", "bee", shift=Inverted())})
    arrays = data.splits(COLOUR)["train"]
    images, labels = arrays.read(slice(None))["image"], arrays.values["label"]
    light = images * np.array(inner.deviation)[:, None, None] + np.array(inner.mean)[:, None, None]
    for label, colours in enumerate([(0, 102, 0), (0, 255, 204), (255, 153, 255)]):
        expected = np.array(colours)[:, None, None] / 255
        np.testing.assert_allclose(light[labels == label], np.broadcast_to(expected, (3, 3, 4, 6)), atol=1e-5)
    printed = Fingerprint.compute(data, arrays)
    Image.new("RGB", (6, 4)).save(tmp_path / "ant/1.png")
    changed = [Fingerprint.compute(data, each) for each in data.splits(COLOUR).values()]
    assert printed not in changed


def test_the_fingerprint_depends_on_what_is_read_and_what_is_done(tmp_path: Path) -> None:
    found = set()
    for add, shift in ((0, Inverted()), (0.25, Inverted()), (0, Rotated()), (0, Rotated(angle=45.0)), (0, None)):
        images = np.zeros((8, 1, 8, 8), np.float32)
        images[0, 0, 0, 0] = add
        np.savez(tmp_path / "x.npz", image=images, label=np.arange(8) % 2)
        data = TaskSequence(of=Npz(train=str(tmp_path / "x.npz")), tasks={"a": task(1, 0, shift=shift)})
        found.add(tuple(Fingerprint.compute(data, each) for each in data.splits(GRAPH).values()))
    assert len(found) == 5


# ---------------------------------------------------------------- mistakes

INNER = "{name: digits, limit: 300}"
MISTAKES = {
    "no tasks": ("of: INNER", "MG504", "needs tasks or classes_per_task"),
    "empty": ("of: INNER, tasks: {}", "MG504", "needs tasks or"),
    "both": (
        "of: INNER, tasks: {a: {classes: [1]}}, classes_per_task: 2",
        "MG504",
        "tasks or classes_per_task, not both",
    ),
    "idle classes": ("of: INNER, tasks: {a: {classes: [1]}}, classes: [2]", "MG504", "classes with tasks"),
    "no data": ("tasks: {a: {classes: [1]}}", "MG505", "data needs of"),
    "no class": ("of: INNER, tasks: {a: {classes: []}}", "MG504", "data.tasks.a has no classes"),
    "no key": ("of: INNER, tasks: {a: {shift: none}}", "MG505", "data.tasks.a needs classes"),
    "unknown shift": ("of: INNER, tasks: {a: {classes: [1], shift: invert}}", "MG506", 'did you mean "inverted"'),
    "shift's key": ("of: INNER, tasks: {a: {classes: [1], shift: {name: noisy, by: 1}}}", "MG503", "deviation"),
    "nested": (
        "of: {name: task_sequence, of: INNER, classes_per_task: 1}, classes_per_task: 1",
        "MG504",
        "a sequence of tasks",
    ),
    "unknown number": ("of: INNER, tasks: {a: {classes: [1, 10]}}", "MG613", "unknown class 10"),
    "unknown word": ("of: INNER, tasks: {a: {classes: [one]}}", "MG613", "its classes are: 0, 1, 2"),
    "unknown of all": ("of: INNER, classes_per_task: 2, classes: [11]", "MG613", "unknown class 11 in data.classes"),
    "twice": ("of: INNER, tasks: {a: {classes: [1]}, b: {classes: [2, '1']}}", "MG614", 'task "a" already has class 1'),
    "twice in one": ("of: INNER, tasks: {a: {classes: [1, 1]}}", "MG614", 'task "a" already has class 1'),
    "twice shifted": (
        "of: INNER, tasks: {a: {classes: [1], shift: noisy}, b: {classes: [1], shift: noisy}}",
        "MG614",
        "with the same shift",
    ),
    "no examples": ("of: {name: digits, limit: 2}, tasks: {a: {classes: [0, 1, 2]}}", "MG615", "train has no examples"),
    "no image": ("of: INNER, input: picture, tasks: {a: {classes: [1], shift: noisy}}", "MG616", "data.tasks.a"),
    "no target": ("of: INNER, target: kind, tasks: {a: {classes: [1]}}", "MG511", "no such target"),
    "too many": ("of: INNER, classes_per_task: 5", "MG511", "0 to 9"),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_mistakes_are_reported(tmp_path: Path, kind: str) -> None:
    keys, code, words = MISTAKES[kind]
    (tmp_path / "r.yaml").write_text(f"data: {{name: task_sequence, {keys.replace('INNER', INNER)}}}\n")
    with pytest.raises(ModgraphError) as caught:
        read_recipe(tmp_path / "r.yaml").data.splits(GRAPH)
    assert code in {each.code for each in caught.value.diagnostics}
    assert words in str(caught.value)


def test_what_is_no_light_is_not_shifted(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", image=np.full((8, 1, 8, 8), 3.0), label=np.arange(8) % 2)
    data = TaskSequence(of=Npz(train=str(tmp_path / "x.npz")), tasks={"a": task(0, shift=Inverted())})
    with pytest.raises(ModgraphError, match=r"MG616(.|\n)*has 3 to 3"):
        data.splits(GRAPH)


def test_a_task_without_anything_to_measure_is_reported(tmp_path: Path) -> None:
    for name, labels in (("train", [0, 1, 2]), ("test", [0, 0, 1])):
        np.savez(tmp_path / f"{name}.npz", image=np.zeros((3, 1, 8, 8)), label=np.array(labels))
    inner = Npz(train=str(tmp_path / "train.npz"), test=str(tmp_path / "test.npz"))
    assert TaskSequence(of=inner, tasks={"a": task(0), "b": task(1, 2)}).splits(GRAPH)
    with pytest.raises(ModgraphError, match=r"MG615(.|\n)*test has no examples of task b"):
        TaskSequence(of=inner, tasks={"a": task(0), "b": task(2)}).splits(GRAPH)


# ---------------------------------------------------------------- in a run

SPEC = """
model digits() {
  input  image: float[1, 8, 8]
  target label: class[3]
  logits = image -> flatten -> linear(3)
  output logits
  loss cross_entropy(logits, label)
}
"""
RECIPE = """
data:
  name: task_sequence
  of: {name: digits, limit: 300}
  tasks:
    upright: {classes: [5, 3]}
    inverted: {classes: [5], shift: inverted}
train: {epochs: 4, batch: 32, by: task, optimizer: {name: adam, lr: 0.02}}
"""


def test_a_run_learns_a_sequence_and_knows_it_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "digits.mod").write_text(SPEC)
    (tmp_path / "digits.yaml").write_text(RECIPE)
    metrics = begin(tmp_path / "digits.mod", tmp_path / "run")
    named = [name.removeprefix("test.task.") for name in metrics if name.startswith("test.task.")]
    assert [name for name in named if name.endswith(".accuracy")] == ["upright.accuracy", "inverted.accuracy"]
    assert metrics["test.accuracy"] > 0.9
    run = load_run(tmp_path / "run")
    assert run.recipe.data == read_recipe(tmp_path / "digits.yaml").data
    assert run.description()["classes"]["label"] == ["5", "3", "5 (inverted)"]
    assert main(["eval", str(run.path), "--json"]) == 0
    again = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert again["test.task.inverted.accuracy"] == metrics["test.task.inverted.accuracy"]
    assert load_run(run.path, **{"of.limit": 50}).splits()["train"].values["label"].max() == 2


def test_paths_within_are_named_where_data_have_changed(tmp_path: Path) -> None:
    arrays = {"image": np.random.default_rng(0).random((60, 1, 8, 8)), "label": np.arange(60) % 3}
    np.savez(tmp_path / "x.npz", **arrays)
    (tmp_path / "digits.mod").write_text(SPEC)
    recipe = f"data: {{name: task_sequence, of: {{name: npz, train: {tmp_path}/x.npz}}, classes_per_task: 2}}\n"
    (tmp_path / "digits.yaml").write_text(recipe + "train: {epochs: 1}\n")
    begin(tmp_path / "digits.mod", tmp_path / "run")
    np.savez(tmp_path / "x.npz", **{**arrays, "image": arrays["image"] / 2})
    with pytest.raises(ModgraphError, match=r"MG620(.|\n)*-s data\.of\.test="):
        load_run(tmp_path / "run").test_data()
