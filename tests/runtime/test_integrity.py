"""A bundle is opened only as it was exported; and it is whole, so that no other file is read."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from modgraph_runtime import Bundle, BundleError, model_file
from modgraph_runtime.command import main as runtime_main
from modgraph_runtime.integrity import LENGTH, trailer
from onnx import TensorProto, helper

import modgraph
from modgraph.cli import main


@pytest.fixture(params=["bytes", "path"], autouse=True)
def given(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ONNX Runtime is given of a file: its bytes, or, as of a large one, the path of the open file."""
    monkeypatch.setattr(model_file, "LARGE", 0 if request.param == "path" else model_file.LARGE)


SMALL = """model small() { input x: float[4] target label: class[3] y = x -> linear(3) output y
  loss cross_entropy(y, label) }"""
X = np.arange(8, dtype=np.float32).reshape(2, 4)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    modgraph.export(modgraph.loads(SMALL).build(), folder / "m.onnx")
    np.savez(folder / "x.npz", x=X)
    return folder


@pytest.fixture
def bundle(exported: Path, tmp_path: Path) -> Path:
    """A copy to damage, its manifest beside it."""
    for name in ("m.onnx", "m.json"):
        (tmp_path / name).write_bytes((exported / name).read_bytes())
    return tmp_path / "m.onnx"


def test_a_bundle_is_an_ordinary_model_that_ends_in_the_digest_of_the_rest(bundle: Path) -> None:
    proto = onnx.load(bundle)
    onnx.checker.check_model(proto)
    metadata = {each.key: each.value for each in proto.metadata_props}
    assert set(metadata) == {"modgraph", "modgraph.sha256"}
    assert metadata["modgraph.sha256"] == hashlib.sha256(bundle.read_bytes()[:-LENGTH]).hexdigest()
    session = onnxruntime.InferenceSession(bundle, providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], Bundle(bundle).run({"x": X})["y"])


def without_digest(content: bytes) -> bytes:
    return content[:-LENGTH]


def of_another_tool(content: bytes) -> bytes:
    proto = onnx.load_from_string(content[:-LENGTH])
    proto.producer_name = "onnx.quantize"
    return proto.SerializeToString()


def of_elsewhere(content: bytes) -> bytes:
    proto = onnx.load_from_string(content)
    proto.producer_name = "pytorch"
    del proto.metadata_props[:]
    return proto.SerializeToString()


def in_the_weights(content: bytes) -> bytes:
    (weight, *_) = onnx.load_from_string(content).graph.initializer
    place = content.index(weight.raw_data) + 2
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str, bool]] = {
    "without its digest": (without_digest, "has no digest", True),
    "written again by another tool": (of_another_tool, "has no digest", True),
    "cut off": (lambda content: content[:100], "has no digest", False),
    "something after it": (lambda content: content + b"\n", "has no digest", False),
    "digest in capitals": (lambda content: content[:-64] + content[-64:].upper(), "have changed", True),
    "a bit of a weight": (in_the_weights, "have changed since the export; copy or export it again", True),
    "of elsewhere": (of_elsewhere, "is no bundle: modgraph has not exported it", False),
    "empty": (lambda content: b"", "is no bundle", False),
    "no model": (lambda content: b"hello", "is no bundle", False),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_not_as_it_was_exported_is_refused_unless_unchecked(bundle: Path, damage: str) -> None:
    change, words, readable = DAMAGES[damage]
    bundle.write_bytes(change(bundle.read_bytes()))
    with pytest.raises(BundleError, match=words):
        Bundle(bundle)
    if readable:
        assert Bundle(bundle, check=False).run({"x": X})["y"].shape == (2, 3)
        return
    with pytest.raises(BundleError):
        Bundle(bundle, check=False)


@pytest.mark.parametrize("command", [runtime_main, lambda arguments: main(["run", *arguments])])
def test_commands_open_a_damaged_bundle_only_unchecked(
    command: Callable[[list[str]], int], bundle: Path, exported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle.write_bytes(in_the_weights(bundle.read_bytes()))
    arguments = [str(bundle), "--input", str(exported / "x.npz")]
    assert command(arguments) == 1
    errors = capsys.readouterr().err
    assert "is damaged" in errors
    assert "export it again" in errors
    assert "--info" not in errors
    assert command([*arguments, "--unchecked"]) == 0
    assert "y [2, 3]" in capsys.readouterr().out


# ---------------------------------------------------------------- the manifest beside it


def changed(manifest: dict[str, Any]) -> bytes:
    return json.dumps({**manifest, "model": "another"}).encode()


def without(*keys: str) -> Callable[[dict[str, Any]], bytes]:
    return lambda manifest: json.dumps({key: manifest[key] for key in manifest if key not in keys}).encode()


MANIFESTS: dict[str, tuple[Callable[[dict[str, Any]], bytes], str | None]] = {
    "laid out otherwise": (lambda manifest: json.dumps(manifest, indent=7, sort_keys=True).encode(), None),
    "an object of somebody else's": (lambda manifest: b'{"name": "package", "format": "esm"}', None),
    "a list": (lambda manifest: b"[1, 2]", None),
    "of another bundle": (changed, "is not the one in the bundle"),
    "without one key": (without("ir"), "is not the one in the bundle"),
    "without the pools": (without("pools"), "is not the one in the bundle"),
    "cut off": (lambda manifest: json.dumps(manifest).encode()[:-2], "is not JSON"),
    "empty": (lambda manifest: b"", "is not JSON"),
    "bytes": (lambda manifest: b"\xff\x00", "is not JSON"),
    "deeply nested": (lambda manifest: b"[" * 100_000, "is not JSON"),
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_the_manifest_next_to_a_bundle_is_that_in_it(bundle: Path, case: str) -> None:
    write, words = MANIFESTS[case]
    manifest_path = bundle.with_suffix(".json")
    manifest_path.write_bytes(write(json.loads(manifest_path.read_text())))
    if words is None:
        Bundle(bundle)
        return
    with pytest.raises(BundleError, match=words):
        Bundle(bundle)
    Bundle(bundle, check=False)


def test_a_separate_manifest_is_not_needed_and_never_waited_for(bundle: Path) -> None:
    manifest_path = bundle.with_suffix(".json")
    manifest_path.unlink()
    assert Bundle(bundle).manifest["model"] == "small"
    os.mkfifo(manifest_path)
    with pytest.raises(BundleError, match="a pipe"):
        Bundle(bundle)


# ---------------------------------------------------------------- whole


KINDS = ("matrix", "weight", "constant", "given")


def sealed(content: bytes, out: Path) -> Path:
    """A file with a digest that is right, as whoever changes one on purpose would write it."""
    out.write_bytes(content + trailer(content))
    return out


def with_weight_elsewhere(bundle: Path, location: str, kind: str) -> bytes:
    """The model with more weights, in another file: multiplied with, added, added as a constant, or given."""
    proto = onnx.load(bundle)
    metadata = next(each for each in proto.metadata_props if each.key == "modgraph")
    del proto.metadata_props[:]
    proto.metadata_props.append(metadata)
    elsewhere = TensorProto(name="elsewhere", data_type=TensorProto.FLOAT, dims=[3, 3] if kind == "matrix" else [1, 3])
    elsewhere.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, "offset": "0", "length": str(12 * elsewhere.dims[0])}.items():
        elsewhere.external_data.add(key=key, value=value)
    for node in proto.graph.node:
        node.output[:] = ["within" if name == "y" else name for name in node.output]
    if kind == "constant":
        proto.graph.node.append(helper.make_node("Constant", [], ["elsewhere"], value=elsewhere))
    else:
        proto.graph.initializer.append(elsewhere)
    if kind == "given":
        shape = helper.make_node("Shape", ["within"], ["shape"])
        proto.graph.node.extend([shape, helper.make_node("Expand", ["elsewhere", "shape"], ["y"])])
    else:
        op = "MatMul" if kind == "matrix" else "Add"
        proto.graph.node.append(helper.make_node(op, ["within", "elsewhere"], ["y"]))
    return proto.SerializeToString()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("check", [True, False])
def test_a_bundle_never_reads_another_file(
    bundle: Path, monkeypatch: pytest.MonkeyPatch, kind: str, check: bool
) -> None:
    """Neither beside it, nor in the current folder, nor anywhere else: what it computes would tell what is there."""
    folder = bundle.parent
    (folder / "secret").write_bytes(np.ones(9, np.float32).tobytes())
    (folder / "below").mkdir()
    (folder / "below/secret").write_bytes(np.ones(9, np.float32).tobytes())
    bundle.with_suffix(".json").unlink()
    contents = [
        with_weight_elsewhere(bundle, place, kind)
        for place in ("secret", "./secret", "below/secret", "../secret", "/etc/passwd", str(folder / "secret"))
    ]
    for current in (folder, folder / "below"):
        monkeypatch.chdir(current)
        for content in contents:
            with pytest.raises(BundleError, match=r"no ONNX model that can be loaded"):
                Bundle(sealed(content, bundle), check=check).run({"x": X})


def test_the_model_that_reads_another_file_would_be_read_without_that(bundle: Path) -> None:
    """What the test above refuses is refused for its reason alone: onnxruntime reads it when it is given the path."""
    (bundle.parent / "secret").write_bytes(np.ones(9, np.float32).tobytes())
    for kind in KINDS:
        path = sealed(with_weight_elsewhere(bundle, "secret", kind), bundle.parent / "reads.onnx")
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        assert session.run(None, {"x": X})[0].shape == (2, 3)


def test_a_model_in_the_format_of_onnxruntime_is_refused(bundle: Path, tmp_path: Path) -> None:
    """That format goes past the checks of the other."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "m.ort")
    options.log_severity_level = 4
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(bundle, options, providers=["CPUExecutionProvider"])
    content = (tmp_path / "m.ort").read_bytes()
    for written in (content, content + trailer(content)):
        bundle.write_bytes(written)
        with pytest.raises(BundleError, match="no ONNX model that can be loaded"):
            Bundle(bundle, check=False)
    with pytest.raises(BundleError, match="no ONNX model that can be loaded"):
        Bundle(bundle)
