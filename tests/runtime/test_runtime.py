"""The runtime: what it takes and refuses, and that it needs no torch."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import venv
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from modgraph_runtime import Bundle, BundleError
from modgraph_runtime.arrays import read_arrays, write_arrays
from modgraph_runtime.command import main as runtime_main
from modgraph_runtime.integrity import FORMAT, trailer

import modgraph
from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.store.architecture import read_architecture
from tests.examples import SEQUENCE
from tests.traces import shared_traces


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory, traces: Path) -> Path:
    """A folder with smn.onnx (class names included), words.onnx and some arrays."""
    folder = tmp_path_factory.mktemp("bundles")
    names = {
        "classes": {"label": [f"d{digit}" for digit in range(10)]},
        "preprocessing": {"image": {"words": "ink is 1", "channels": "grey"}},
    }
    smn = modgraph.load("specs/smn.mod", iterations=1).build()
    with shared_traces(traces):
        modgraph.export(smn, folder / "smn.onnx", routing=True, description=names)
        modgraph.export(modgraph.loads(SEQUENCE).build(), folder / "words.onnx")
    image = np.random.default_rng(0).random((5, 1, 28, 28))
    np.savez(folder / "x.npz", image=image, label=np.zeros(5, int))
    return folder


def test_outputs_come_by_name_and_in_chunks_all_the_same(bundles: Path) -> None:
    bundle = Bundle(bundles / "smn.onnx", threads=1)
    image = np.random.default_rng(1).random((7, 1, 28, 28)).astype(np.float32)
    whole = bundle.run({"image": image})
    assert list(whole) == ["logits"]
    np.testing.assert_allclose(bundle.run({"image": image}, chunk=3)["logits"], whole["logits"], atol=1e-5)
    np.testing.assert_allclose(bundle.run({"image": image.astype(np.float64)})["logits"], whole["logits"])
    routed = bundle.run({"image": image}, routing=True)
    assert routed["specialist.gates"].shape == (7, 64, 2)
    np.testing.assert_allclose(routed["specialist.gates"].sum(-1), 1, atol=1e-5)


def test_predictions_are_names_of_classes(bundles: Path) -> None:
    bundle = Bundle(bundles / "smn.onnx")
    image = np.random.default_rng(1).random((3, 1, 28, 28))
    best = bundle.run({"image": image})["logits"].argmax(-1)
    assert bundle.predict({"image": image})["logits"].tolist() == [f"d{digit}" for digit in best]


def test_classes_without_names_are_numbers_and_other_values_stay(bundles: Path) -> None:
    words = np.zeros((2, 4), int)
    bundle = Bundle(bundles / "words.onnx")
    assert bundle.predict({"words": words})["logits"].dtype == np.int64
    assert bundle.outputs["logits"].target == "label"


def test_no_examples_give_empty_outputs(bundles: Path) -> None:
    found = Bundle(bundles / "smn.onnx").run({"image": np.zeros((0, 1, 28, 28))}, routing=True)
    assert {name: values.shape for name, values in found.items()} == {
        "logits": (0, 10),
        "specialist.gates": (0, 64, 2),
        "specialist.scores": (0, 64, 2),
    }


BAD_INPUTS = {
    "missing": ({}, "is missing"),
    "unknown": ({"picture": np.zeros((1, 1, 28, 28))}, "no input"),
    "rank": ({"image": np.zeros((28, 28))}, "needs 4 axes"),
    "size": ({"image": np.zeros((1, 1, 28, 27))}, "needs 28 where it has 27 \\(axis 3\\)"),
    "text": ({"image": np.full((1, 1, 28, 28), "a")}, "needs float32"),
    "nan": ({"image": np.full((1, 1, 28, 28), np.nan)}, "or NaN"),
    "objects": ({"image": np.full((1, 1, 28, 28), None)}, "needs float32"),
    "ragged": ({"image": [[1.0], [1.0, 2.0]]}, "rows differ in length"),
    "overflow": ({"image": np.full((1, 1, 28, 28), 1e300)}, "infinite"),
    "complex": ({"image": np.zeros((1, 1, 28, 28), complex)}, "needs float32"),
}


WRONG_CALLS: dict[str, tuple[str, Any, dict[str, Any], str]] = {
    "an array": (
        "smn",
        np.zeros((1, 1, 28, 28)),
        {},
        'arrays must be given by name; the inputs: image float[1, 28, 28]; run({"image": …})',
    ),
    "a list": (
        "words",
        [[1]],
        {},
        'arrays must be given by name; the inputs: words token[time, 20]; run({"words": …})',
    ),
    "no chunk": ("words", {"words": [[1]]}, {"chunk": 0}, "chunk must be a whole number from 1, not 0"),
    "half a chunk": ("words", {"words": [[1]]}, {"chunk": 1.5}, "chunk must be a whole number from 1, not 1.5"),
}


@pytest.mark.parametrize("mistake", WRONG_CALLS)
def test_wrong_calls_are_refused(bundles: Path, mistake: str) -> None:
    name, inputs, options, words = WRONG_CALLS[mistake]
    with pytest.raises(BundleError) as refused:
        Bundle(bundles / f"{name}.onnx").run(inputs, **options)
    assert str(refused.value).endswith(words)


def test_bytes_for_light_are_warned_of_once(bundles: Path) -> None:
    bundle, image = Bundle(bundles / "smn.onnx"), np.full((1, 1, 28, 28), 200, np.uint8)
    with pytest.warns(UserWarning, match=r'"image" holds bytes up to 200, .* from 0 to 1; divide it by 255$') as found:
        bundle.run({"image": image})
        bundle.run({"image": image})
    assert len(found) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Bundle(bundles / "smn.onnx").run({"image": image > 0})
        Bundle(bundles / "smn.onnx").run({"image": image.astype(np.float32)})


@pytest.mark.parametrize("mistake", BAD_INPUTS)
def test_arrays_that_do_not_fit_are_refused(bundles: Path, mistake: str) -> None:
    inputs, words = BAD_INPUTS[mistake]
    with pytest.raises(BundleError, match=words):
        Bundle(bundles / "smn.onnx").run(inputs)  # type: ignore[arg-type]


def test_tokens_and_lengths_are_checked(bundles: Path) -> None:
    bundle = Bundle(bundles / "words.onnx")
    words = np.zeros((2, 4), int)
    with pytest.raises(BundleError, match=r"values from 20 to 20; .* allows 0 to 19"):
        bundle.run({"words": words + 20})
    with pytest.raises(BundleError, match="needs int64"):
        bundle.run({"words": words.astype(float)})
    with pytest.raises(BundleError, match="between 0 and 4"):
        bundle.run({"words": words, "time_length": np.array([5, 1])})
    with pytest.raises(BundleError, match="one whole number"):
        bundle.run({"words": words, "time_length": np.array([1.0, 2.0])})


@pytest.mark.parametrize("content", [b"", b"not onnx", b"\x08\x0a" * 50])
def test_files_that_are_no_model_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.onnx").write_bytes(content)
    with pytest.raises(BundleError):
        Bundle(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    "manifest", [None, "{", "[]", '{"format": 99}', '{"format": 1}', '{"format": 1, "inputs": [{"name": "z"}]}']
)
def test_manifests_that_were_tampered_with_are_refused(bundles: Path, tmp_path: Path, manifest: str | None) -> None:
    proto = onnx.load(bundles / "smn.onnx")
    del proto.metadata_props[:]
    if manifest is not None:
        onnx.helper.set_model_props(proto, {"modgraph": manifest})
    path = sealed(proto.SerializeToString(), tmp_path / "m.onnx")
    with pytest.raises(BundleError, match="manifest"):
        Bundle(path)


@pytest.mark.parametrize("number", [0, 99])
def test_a_manifest_of_another_format_is_refused_with_the_way_out(bundles: Path, tmp_path: Path, number: int) -> None:
    path = tampered(bundles / "smn.onnx", tmp_path / "m.onnx", lambda manifest: manifest.update(format=number))
    reason = f"has format {number}, but this version reads format {FORMAT}"
    with pytest.raises(BundleError, match=reason) as refused:
        Bundle(path)
    assert refused.value.way_out == "export the model again: modgraph export RUN -o model.onnx"
    with pytest.raises(ModgraphError) as caught:
        read_architecture(path)
    (refusal,) = caught.value.diagnostics
    assert refusal.code == "MG632"
    assert reason in refusal.text()
    assert refusal.advice() == refused.value.way_out


def tampered(path: Path, out: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A bundle whose manifest was changed by hand."""
    proto = onnx.load(path)
    manifest = json.loads(proto.metadata_props[0].value)
    change(manifest)
    onnx.helper.set_model_props(proto, {"modgraph": json.dumps(manifest)})
    return sealed(proto.SerializeToString(), out)


def sealed(content: bytes, out: Path) -> Path:
    """A file with a digest that is right, as whoever changes one on purpose would write it."""
    out.write_bytes(content + trailer(content))
    return out


LIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "another type": lambda manifest: manifest["inputs"][0].update(dtype="token"),
    "a type that is none": lambda manifest: manifest["inputs"][0].update(dtype="imaginary"),
    "a dtype of a list": lambda manifest: manifest["inputs"][0].update(dtype=["float"]),
    "another shape": lambda manifest: manifest["inputs"][0].update(shape=[1, 28, 27]),
    "another rank": lambda manifest: manifest["outputs"][0].update(shape=[10, 1]),
    "a shape of words": lambda manifest: manifest["inputs"][0].update(shape=[1, 28, 2.5]),
    "a missing input": lambda manifest: manifest["inputs"].clear(),
    "another tensor": lambda manifest: manifest["outputs"][0].update(tensor="elsewhere"),
    "classes that are no list": lambda manifest: manifest.update(classes={"logits": 7}),
    "classes that are no text": lambda manifest: manifest["classes"]["logits"].__setitem__(0, None),
    "axes that are no object": lambda manifest: manifest.update(axes=[1]),
    "inputs that are no list": lambda manifest: manifest.update(inputs=5),
    "a shape of text": lambda manifest: manifest["inputs"][0].update(shape="abc"),
    "a shape of nothing": lambda manifest: manifest["outputs"][0].update(shape=[0]),
    "a shape below nothing": lambda manifest: manifest["routing"][0].update(shape=[-1, 2]),
    "an axis that no input has": lambda manifest: manifest["routing"][0].update(shape=["time", 2]),
    "a bound that is no length": lambda manifest: manifest.update(axes={"time": {"longest": "long"}}),
    "names left out that are none": lambda manifest: manifest.update(left_out={"inputs": "x"}),
    "outputs left out that are none": lambda manifest: manifest.update(left_out={"outputs": [5]}),
    "a target that is no text": lambda manifest: manifest["outputs"][0].update(target=5),
}


@pytest.mark.parametrize("lie", LIES)
def test_manifests_that_say_other_than_the_model_are_refused(bundles: Path, tmp_path: Path, lie: str) -> None:
    path = tampered(bundles / "smn.onnx", tmp_path / "m.onnx", LIES[lie])
    with pytest.raises(BundleError, match=r"manifest of .* is damaged"):
        Bundle(path)


def test_what_is_only_reported_may_be_missing(
    bundles: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def strip(manifest: dict[str, Any]) -> None:
        for key in ("preprocessing", "verified", "classes", "model", "pools", "ir"):
            del manifest[key]
        manifest["preprocessing"] = "none"

    path = tampered(bundles / "smn.onnx", tmp_path / "m.onnx", strip)
    assert runtime_main([str(path), "--info"]) == 0
    assert runtime_main([str(path), "--input", str(bundles / "x.npz")]) == 0
    assert "logits [5, 10]:" in capsys.readouterr().out


@pytest.mark.parametrize("seed", range(60))
def test_damaged_files_are_refused_or_read_never_worse(bundles: Path, tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    np.savez_compressed(tmp_path / "x.npz", image=np.zeros((2, 1, 28, 28)))
    for path, source in ((tmp_path / "f.npz", tmp_path / "x.npz"), (tmp_path / "f.onnx", bundles / "smn.onnx")):
        content = np.frombuffer(source.read_bytes(), np.uint8).copy()
        for place in (rng.integers(len(content)), rng.integers(200), len(content) - 1 - rng.integers(200)):
            content[place] = rng.integers(256)
        path.write_bytes(content[: len(content) if rng.random() < 0.8 else rng.integers(len(content))].tobytes())
    with contextlib.suppress(BundleError):
        read_arrays(str(tmp_path / "f.npz"))
    with contextlib.suppress(BundleError):
        Bundle(tmp_path / "f.onnx", check=False)


def test_any_name_can_be_written(tmp_path: Path) -> None:
    write_arrays(str(tmp_path / "y.npz"), {"file": np.arange(3), "args": np.ones(2), "r.gates": np.zeros((1, 2))})
    assert {name: array.shape for name, array in read_arrays(str(tmp_path / "y.npz")).items()} == {
        "file": (3,),
        "args": (2,),
        "r.gates": (1, 2),
    }
    assert [path.name for path in tmp_path.iterdir()] == ["y.npz"]


@pytest.mark.parametrize("command", [runtime_main, lambda arguments: main(["run", *arguments])])
def test_the_command_writes_or_summarises(
    command: object, bundles: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(command)
    assert command([str(bundles / "smn.onnx"), "--input", str(bundles / "x.npz")]) == 0
    printed = capsys.readouterr().out
    assert "label is a target of the model" in printed
    assert "logits [5, 10]: d" in printed
    out = tmp_path / "y.npz"
    assert command([str(bundles / "smn.onnx"), "--input", str(bundles / "x.npz"), "--output", str(out)]) == 0
    with np.load(out) as arrays:
        assert arrays["logits"].shape == (5, 10)
    assert command([str(bundles / "smn.onnx"), "--info"]) == 0
    reason = capsys.readouterr().out
    assert "image: float[1, 28, 28]" in reason and "made     image: ink is 1\n" in reason


@pytest.mark.parametrize("command", [runtime_main, lambda arguments: main(["run", *arguments])])
def test_the_command_says_what_is_wrong_in_a_line(
    command: object, bundles: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(command)
    np.save(tmp_path / "single.npy", np.zeros(3))
    np.savez(tmp_path / "objects.npz", image=np.array([None], dtype=object))
    np.savez(tmp_path / "empty.npz", image=np.zeros((0, 1, 28, 28)))
    np.savez(tmp_path / "other.npz", picture=np.zeros((1, 1, 28, 28)))
    (tmp_path / "text.npz").write_text("hello")
    model = str(bundles / "smn.onnx")
    for arguments in (
        ["missing.onnx", "--input", str(bundles / "x.npz")],
        [model],
        [model, "--input", "missing.npz"],
        [model, "--input", str(tmp_path / "single.npy")],
        [model, "--input", str(tmp_path / "objects.npz")],
        [model, "--input", str(tmp_path / "text.npz")],
        [model, "--input", str(tmp_path)],
        [model, "--input", str(tmp_path / "empty.npz")],
        [model, "--input", str(tmp_path / "other.npz")],
        [str(bundles / "words.onnx"), "--input", str(bundles / "x.npz"), "--routing"],
        [str(tmp_path), "--input", str(bundles / "x.npz")],
        [model, "--input", str(bundles / "x.npz"), "--output", str(tmp_path)],
        [model, "--input", str(bundles / "x.npz"), "--output", str(tmp_path / "no/where.npz")],
    ):
        assert command(arguments) == 1
        reason = capsys.readouterr().err
        assert "error" in reason
        assert "Traceback" not in reason


def test_running_a_bundle_does_not_import_torch(bundles: Path) -> None:
    script = (
        "import sys; from modgraph.cli import main; "
        f"code = main(['run', {str(bundles / 'smn.onnx')!r}, '--input', {str(bundles / 'x.npz')!r}]); "
        "sys.exit(code or ('torch' in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True).returncode == 0


@pytest.mark.slow
def test_an_environment_without_torch_runs_a_bundle(bundles: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env")
    python = str(tmp_path / "env/bin/python")
    install = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-compile", "./export/runtime"]
    subprocess.run(install, check=True)
    assert subprocess.run([python, "-c", "import torch"], capture_output=True).returncode != 0
    out = tmp_path / "y.npz"
    command = [str(tmp_path / "env/bin/modgraph-runtime"), str(bundles / "smn.onnx")]
    subprocess.run([*command, "--input", str(bundles / "x.npz"), "--output", str(out)], check=True)
    script = (
        "import json, numpy as np; from modgraph_runtime import Bundle; "
        f"x = np.load({str(bundles / 'x.npz')!r})['image']; "
        f"print(json.dumps(Bundle({str(bundles / 'smn.onnx')!r}).run({{'image': x}})['logits'].tolist()))"
    )
    printed = subprocess.run([python, "-c", script], check=True, capture_output=True, text=True).stdout
    with np.load(out) as arrays, np.load(bundles / "x.npz") as inputs:
        np.testing.assert_allclose(json.loads(printed), arrays["logits"], atol=1e-6)
        ours = Bundle(bundles / "smn.onnx").run({"image": inputs["image"]})["logits"]
        np.testing.assert_allclose(arrays["logits"], ours, atol=1e-6)
