"""`modgraph predict`: files in, names of classes and probabilities out, by runs and by bundles."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from modgraph_runtime import integrity
from PIL import Image

from modgraph.cli import main
from modgraph.prediction.predictions import predict
from modgraph.training.stored_run import load_run

IMAGES = """model m() {
  input image: float[3, 6, 6] target label: class[2]
  logits = image -> flatten -> linear(2) output logits loss cross_entropy(logits, label)
}"""
DIGITS = IMAGES.replace("[3, 6, 6]", "[1, 8, 8]").replace("class[2]", "class[10]").replace("linear(2)", "linear(10)")
TABLE = """model m() {
  input x: float[2] target y: float[2]
  z = x -> linear(2) output z loss mse(z, y)
}"""
WORDS = """model m() {
  input words: token[time, 12] target tag: class[time, 3]
  logits = words -> embedding(4) -> linear(3) output logits loss cross_entropy(logits, tag)
}"""
CONLL = "the DET\ndog NOUN\nsees VERB\n\na DET\ncat NOUN\nsleeps VERB\n\n" * 8
Train = Callable[..., tuple[str, str]]


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Train:
    """Trains a spec on a data section, and exports it: the paths of the run and of the bundle."""

    def trained(spec: str, data: str, epochs: int = 6) -> tuple[str, str]:
        folder = tmp_path_factory.mktemp("trained")
        (folder / "m.mod").write_text(spec)
        (folder / "m.yaml").write_text(
            f"data: {data}\ntrain: {{epochs: {epochs}, batch: 8, optimizer: {{name: adam, lr: 0.05}}}}"
        )
        assert main(["train", str(folder / "m.mod"), "--out", str(folder / "run"), "-q"]) == 0
        assert main(["export", str(folder / "run"), "-o", str(folder / "m.onnx"), "-q"]) == 0
        return str(folder / "run"), str(folder / "m.onnx")

    return trained


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a folder for each class: images that are mostly red, or mostly blue."""
    root, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    for name, channel in (("blue", 2), ("red", 0)):
        (root / name).mkdir()
        for at in range(10):
            pixels = rng.integers(0, 90, (9, 12, 3))
            pixels[..., channel] += 150
            Image.fromarray(pixels.astype(np.uint8)).save(root / name / f"{at}.png")
    return root


@pytest.fixture(scope="module")
def colours(train: Train, pictures: Path) -> tuple[str, str]:
    return train(IMAGES, f"{{name: class_folders, train: {pictures}}}")


@pytest.fixture(scope="module")
def table(train: Train) -> tuple[str, str]:
    return train(TABLE, "{name: two_gaussians, train: 64, test: 32}", epochs=2)


def test_a_quiet_export_prints_nothing(
    table: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", table[0], "-o", str(tmp_path / "m.onnx"), "-q"]) == 0
    assert "".join(capsys.readouterr()) == ""


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_images_of_a_folder_are_named_as_their_data_set_names_them(colours: tuple[str, str], pictures: Path) -> None:
    found = predict(colours[0], pictures)
    assert len(found) == 20
    for record in found:
        name = Path(str(record["input"])).parent.name
        assert record["label"] == name, record
        assert record["label.probability"] == record[f"label.{name}"], "the likeliest class has that probability"
        assert float(record["label.red"]) + float(record["label.blue"]) == pytest.approx(1, abs=1e-5)


def test_an_image_is_prepared_as_the_data_of_the_run(colours: tuple[str, str]) -> None:
    run = load_run(colours[0])
    test = run.test_data()["test"]
    column = test.on_disk["image"]
    logits = run.model()(torch.from_numpy(column.read(slice(None)))).detach()
    expected = torch.softmax(logits, -1)[:, 1]
    found = predict(colours[0], list(column.paths))  # type: ignore[attr-defined]
    assert [record["label.red"] for record in found] == pytest.approx(expected.tolist(), abs=1e-5)


def test_run_and_bundle_agree(colours: tuple[str, str], pictures: Path) -> None:
    by_run, by_bundle = (predict(path, [pictures / "red"]).records for path in colours)
    for one, other in zip(by_run, by_bundle, strict=True):
        assert one.keys() == other.keys()
        for key, value in one.items():
            assert other[key] == (value if isinstance(value, str) else pytest.approx(value, abs=1e-4)), key


def test_run_bundle_and_data_agree_on_images_in_grey(train: Train, pictures: Path) -> None:
    spec = IMAGES.replace("[3, 6, 6]", "[1, 6, 6]")
    run, bundle = train(spec, f"{{name: class_folders, train: {pictures}, mean: [0.4], deviation: [0.2]}}", epochs=2)
    stored = load_run(run)
    column = stored.test_data()["test"].on_disk["image"]
    logits = stored.model()(torch.from_numpy(column.read(slice(None)))).detach()
    expected = pytest.approx(torch.softmax(logits, -1)[:, 1].tolist(), abs=1e-4)
    for path in (run, bundle):
        found = predict(path, list(column.paths))  # type: ignore[attr-defined]
        assert [record["label.red"] for record in found] == expected, path


def test_a_bundle_needs_no_torch(colours: tuple[str, str], pictures: Path) -> None:
    command = ["predict", colours[1], str(pictures / "red" / "0.png")]
    script = f"import sys; from modgraph.cli import main; code = main({command!r}); "
    script += "assert not {'torch', 'onnx'} & set(sys.modules); sys.exit(code)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    title, line = done.stdout.splitlines()
    assert title.split() == ["input", "label"]
    assert line.split()[1:3] == ["red", line.split()[2]], line


def test_a_table_is_written_on_request(
    colours: tuple[str, str], pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out.csv"
    assert main(["predict", colours[0], str(pictures / "blue"), "--csv", str(path)]) == 0
    assert capsys.readouterr().out == "", "the table is in the file"
    found = rows(path.read_text())
    assert list(found[0]) == ["input", "label", "label.probability", "label.blue", "label.red"]
    assert {row["label"] for row in found} == {"blue"}
    command = ["predict", colours[0], str(pictures / "blue"), "--csv", str(path)]
    assert main(command) == 0, "modgraph replaces a table that it wrote"
    path.write_text("input,label\n0.png,blue\n")
    assert main(command) == 1, "a table of somebody else stays"
    assert "modgraph did not write it" in capsys.readouterr().err
    assert main([*command, "--force"]) == 0


@pytest.mark.parametrize(
    ("table", "is_foreign"),
    [
        ("input,label,label.probability\na b.PNG,red,0.9\n", False),
        ("input,z.0,z.1\na.jpg,1,2\n", False),
        ("input,z\nx.npz[3],1\n", False),
        ("input,tag,tag.probability\n-:1,DET,0.5\n", False),
        ("input,label\na.png,red\n", True),
        ("input,output\nquestion,answer\n", True),
        ("input,output\nRatio 3:4,answer\n", True),
        ("x.0,x.1\n1,2\n", True),
        ("input,label,label.probability\n", True),
    ],
)
def test_a_table_of_predictions_is_recognised(table: str, is_foreign: bool, tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text(table)
    assert integrity.is_foreign(tmp_path / "out.csv") == is_foreign, table


def test_a_digit_on_paper_is_taken_as_its_negative(
    train: Train, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from sklearn.datasets import load_digits

    run, bundle = train(DIGITS, "{name: digits, limit: 300}", epochs=4)
    digits = load_digits()
    pixels = (digits.images[:12] / 16 * 255).round().astype(np.uint8)
    for at, image in enumerate(pixels):
        Image.fromarray(image).save(tmp_path / f"{at:02}.png")
    light = torch.from_numpy((pixels / 255).astype(np.float32))[:, None]
    expected = load_run(run).model()(light).argmax(-1)
    assert [record["label"] for record in predict(run, tmp_path)] == [str(int(each)) for each in expected]
    for at, image in enumerate(pixels):
        Image.fromarray(255 - image).convert("RGB").save(tmp_path / f"{at:02}.png")
    Image.fromarray(pixels[3]).save(tmp_path / "03.png")
    capsys.readouterr()
    assert main(["predict", bundle, str(tmp_path), "-v"]) == 0
    printed = capsys.readouterr()
    assert [line.split()[1] for line in printed.out.splitlines()[1:]] == [str(int(each)) for each in expected]
    assert "11 of 12 images are inverted" in printed.err
    inverted = next(line for line in printed.err.splitlines() if line.startswith("inverted: "))
    assert "02.png" in inverted, "with -v they are named"
    assert "03.png" not in inverted, "it has a dark ground"


def test_tables_and_arrays_are_read_by_the_names_of_inputs(table: tuple[str, str], tmp_path: Path) -> None:
    run, bundle = table
    x = np.random.default_rng(1).normal(size=(5, 2)).astype(np.float32)
    expected = load_run(run).model()(torch.from_numpy(x)).detach().numpy()
    np.savez(tmp_path / "x.npz", x=x, y=x)
    np.save(tmp_path / "x.npy", x)
    lines = [f"{a},{b}" for a, b in x.tolist()]
    (tmp_path / "named.csv").write_text("\n".join(["id,x.0,x.1", *(f"7,{line}" for line in lines)]))
    (tmp_path / "plain.csv").write_text("\n".join(lines))
    (tmp_path / "free.csv").write_text("\n".join(["height,width", *lines]))
    for path in (run, bundle):
        for name in ("x.npz", "x.npy", "named.csv", "plain.csv", "free.csv"):
            found = predict(path, tmp_path / name)
            got = [[record["z.0"], record["z.1"]] for record in found]
            np.testing.assert_allclose(np.array(got, np.float64), expected, atol=1e-5, err_msg=f"{path} {name}")
    assert predict(run, {"x": x}).records[2]["z.0"] == pytest.approx(float(expected[2, 0]), abs=1e-5)
    np.save(tmp_path / "one.npy", x[0])
    assert len(predict(run, tmp_path / "one.npy")) == 1, "a single example needs no axis of examples"


def test_texts_are_split_and_looked_up_as_in_training(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tags.txt").write_text(CONLL)
    spec = WORDS.replace("12", "7")
    run, bundle = train(spec, f"{{name: conll, train: {tmp_path / 'tags.txt'}, targets: {{tag: 2}}}}", epochs=20)
    (tmp_path / "lines.txt").write_text("the cat sleeps\n\na dog\n")
    for path in (run, bundle):
        found = predict(path, tmp_path / "lines.txt")
        assert [record["tag"] for record in found] == ["DET NOUN VERB", "DET NOUN"], "as long as each line"
        assert [record["input"].rpartition(":")[2] for record in found] == ["1", "3"], "lines are named"  # type: ignore[union-attr]
        assert len(str(found.records[0]["tag.probability"]).split()) == 3
    monkeypatch.setattr("sys.stdin", io.StringIO("the dog sees\n"))
    assert main(["predict", run, "-"]) == 0
    assert "DET NOUN VERB" in capsys.readouterr().out
    (tmp_path / "text.csv").write_text("n,words\n1,the dog\n")
    assert predict(run, tmp_path / "text.csv").records[0]["tag"] == "DET NOUN"


def test_a_table_goes_to_standard_output(
    colours: tuple[str, str],
    pictures: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["predict", colours[1], str(pictures / "red"), "--csv", "-"]) == 0
    assert [row["label"] for row in rows(capsys.readouterr().out)] == ["red"] * 10
    assert not [*tmp_path.iterdir()], "no file is written"


def test_every_bad_file_of_a_call_is_reported(
    colours: tuple[str, str], pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    image = (pictures / "red" / "0.png").read_bytes()
    for name, content in {"a.png": b"x", "b.png": image, "c.png": image[:100], "d.png": b""}.items():
        (folder / name).write_bytes(content)
    np.savez(tmp_path / "small.npz", image=np.zeros((2, 3, 5, 5)))
    files = [str(folder), str(tmp_path / "no.png"), str(tmp_path / "small.npz")]
    for path in colours:
        assert main(["predict", path, *files, "--csv", str(tmp_path / "out.csv")]) == 1
        printed = capsys.readouterr().err
        assert printed.rstrip().endswith("5 errors"), printed
        assert all(name in printed for name in ("a.png", "c.png", "d.png", "no.png", "small.npz")), printed
        assert "b.png" not in printed, "it is sound"
        assert not (tmp_path / "out.csv").exists()


WRONG = {
    "nothing.png": ["no such file", "check the path"],
    "notes.pdf": ["no image, array, table or text", "give images"],
    "empty": ["the folder has no image", "give images"],
    "broken.png": ["it is no JPEG and no PNG, or is damaged", "repair the image"],
    "small.npz": ["has the shape [2, 3, 5, 5]; float[3, 6, 6] needs 6 where it has 5", "float[3, 6, 6]"],
    "named.npz": ['the model has no input "picture"', "image float[3, 6, 6]"],
    "some.csv": ['it has no column "image.0"', "a, b"],
    "some.txt": ["is a text, and", "predict … x.npz"],
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_said(
    name: str, colours: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.pdf").write_text("x")
    (tmp_path / "broken.png").write_text("x")
    (tmp_path / "some.csv").write_text("a,b\n1,2\n")
    (tmp_path / "some.txt").write_text("a line\n")
    (tmp_path / "empty").mkdir()
    np.savez(tmp_path / "small.npz", image=np.zeros((2, 3, 5, 5)))
    np.savez(tmp_path / "named.npz", picture=np.zeros((2, 3, 6, 6)))
    for path in colours:
        assert main(["predict", path, str(tmp_path / name)]) == 1
        printed = capsys.readouterr().err
        assert name in printed, "the message names the file"
        assert printed.rstrip().endswith("1 error")
        for words in WRONG[name]:
            assert words in printed


def test_classes_without_names_are_numbers_and_said_so(
    train: Train, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "d.npz", image=rng.normal(size=(20, 3, 6, 6)), label=rng.integers(0, 2, 20))
    run, bundle = train(IMAGES, f"{{name: npz, train: {tmp_path / 'd.npz'}}}", epochs=1)
    for path in (run, bundle):
        capsys.readouterr()
        assert main(["predict", path, str(tmp_path / "d.npz")]) == 0
        printed = capsys.readouterr()
        assert "warning[MG526]" in printed.err
        assert printed.out.splitlines()[1].split()[1] in ("0", "1")
    Image.new("RGB", (6, 6)).save(tmp_path / "p.png")
    assert main(["predict", run, str(tmp_path / "p.png")]) == 1
    assert "is an image, and the run" in capsys.readouterr().err


def test_probabilities_of_a_softmax_are_taken_as_they_are(train: Train, pictures: Path) -> None:
    spec = IMAGES.replace("output logits", "p = logits -> softmax output p")
    run, bundle = train(spec, f"{{name: class_folders, train: {pictures}}}", epochs=1)
    for path in (run, bundle):
        for record in predict(path, pictures / "red"):
            assert float(record["label.red"]) + float(record["label.blue"]) == pytest.approx(1, abs=1e-5)
    first = sorted((pictures / "red").iterdir())[0]
    expected = predict(run, first).records[0]["label.red"]
    from modgraph.prediction.facts import Facts
    from modgraph.prediction.images import prepare_image

    loaded = load_run(run)
    facts = Facts.from_graph(loaded.graph, loaded.description(), "it")
    image, _ = prepare_image(str(first), facts.inputs["image"], facts.preprocessing["image"])
    assert loaded.model()(torch.from_numpy(image[None]))[0, 1].item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("short.csv", b"x.0,x.1\n1,2\n3\n", "row 3 must have 2 cells, not 1"),
        ("word.csv", b"x.0,x.1\n1,two\n", 'row 2 must have a number for "x", not "two"'),
        ("endless.csv", b"x.0,x.1\n1,inf\n", "infinite"),
        ("empty.csv", b"x.0,x.1\n", "it has no rows"),
        ("huge.csv", b'x.0,x.1\n1,"' + b"1" * 200_000 + b'"\n', "field larger than field limit"),
        ("text.csv", b"\xff\xfe\x00", "it is not UTF-8"),
        ("cut.npy", b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)", "cut.npy"),
        ("no.npy", b"x", "no.npy"),
        ("no.npz", b"x", "no.npz"),
    ],
)
def test_a_damaged_file_is_said_to_be_one(
    name: str, content: bytes, words: str, table: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    for path in table:
        assert main(["predict", path, str(tmp_path / name)]) == 1
        answer = capsys.readouterr().err
        assert words in answer
        assert answer.rstrip().endswith("1 error")
