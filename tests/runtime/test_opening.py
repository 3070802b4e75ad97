"""ONNX Runtime reads a large bundle itself, from the very file that was checked, and none that may name another."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import onnx
import pytest
from modgraph_runtime import Bundle, BundleError, model_file
from modgraph_runtime.integrity import find_damage_in, trailer
from modgraph_runtime.model_file import may_have_external_data, model_of
from onnx import TensorProto, helper

import modgraph

SPEC = "model m(scale=1.0) { input x: float[3] y = scale * x -> linear(2) output y }"
X = {"x": np.ones((1, 3), np.float32)}
needs_paths = pytest.mark.skipif(not Path(model_file.OPEN_FILES).exists(), reason="no paths of open files here")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """Two bundles that compute different numbers."""
    folder = tmp_path_factory.mktemp("exported")
    for scale in (1.0, 2.0):
        modgraph.export(modgraph.loads(SPEC, scale=scale).build(), folder / f"{scale}.onnx")
    return (folder / "1.0.onnx").read_bytes(), (folder / "2.0.onnx").read_bytes()


@pytest.fixture(autouse=True)
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_file, "LARGE", 0)


@contextmanager
def after(function: Callable[..., Any], then: Callable[[], object]) -> Iterator[None]:
    """Do something at the end of each call of a function, as another process might."""

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "return" and frame.f_code is function.__code__:
            then()

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)


@needs_paths
def test_a_large_bundle_is_given_by_the_path_of_the_open_file(exported: tuple[bytes, bytes], tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(exported[0])
    with path.open("rb") as file:
        model = model_of(file)
        assert isinstance(model, str) and Path(model).samefile(path)
        path.unlink()
        assert Path(model).read_bytes() == exported[0], "the file is the same under no name"


def test_a_small_bundle_is_given_as_bytes(
    exported: tuple[bytes, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_file, "LARGE", len(exported[0]) + 1)
    (tmp_path / "m.onnx").write_bytes(exported[0])
    with (tmp_path / "m.onnx").open("rb") as file:
        assert model_of(file) == exported[0]


@needs_paths
def test_a_file_that_takes_the_place_of_a_checked_one_is_not_opened(
    exported: tuple[bytes, bytes], tmp_path: Path
) -> None:
    path, other = tmp_path / "m.onnx", tmp_path / "other.onnx"
    path.write_bytes(exported[0])
    expected = Bundle(path).run(X)["y"]
    other.write_bytes(exported[1])
    with after(find_damage_in, lambda: other.exists() and other.replace(path)):
        bundle = Bundle(path)
    np.testing.assert_array_equal(bundle.run(X)["y"], expected)
    assert not np.array_equal(Bundle(path).run(X)["y"], expected), "the other took its place"


@needs_paths
def test_a_bundle_that_is_written_to_while_it_is_opened_is_refused(
    exported: tuple[bytes, bytes], tmp_path: Path
) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(exported[0])
    os.utime(path, ns=(0, 0))
    with (
        after(find_damage_in, lambda: path.write_bytes(exported[1])),
        pytest.raises(BundleError, match="changed while"),
    ):
        Bundle(path)
    Bundle(path)


# ---------------------------------------------------------------- external data


def elsewhere(location: str = "secret") -> TensorProto:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    return tensor


def in_an_initializer(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(elsewhere())


def in_a_constant(model: onnx.ModelProto) -> None:
    model.graph.node.append(helper.make_node("Constant", [], ["w"], value=elsewhere()))


def in_a_body(model: onnx.ModelProto) -> None:
    body = helper.make_graph([], "body", [], [], [elsewhere()])
    model.graph.node.append(helper.make_node("If", ["c"], ["z"], then_branch=body, else_branch=body))


def in_a_sparse_one(model: onnx.ModelProto) -> None:
    model.graph.sparse_initializer.add().values.CopyFrom(elsewhere())


def in_a_function(model: onnx.ModelProto) -> None:
    node = helper.make_node("Constant", [], ["w"], value=elsewhere())
    model.functions.append(helper.make_function("d", "f", [], ["w"], [node], [helper.make_opsetid("", 20)]))


def in_a_second_graph(model: onnx.ModelProto) -> bytes:
    """Protobuf merges messages of one field."""
    return (
        model.SerializeToString()
        + onnx.ModelProto(graph=onnx.GraphProto(initializer=[elsewhere()])).SerializeToString()
    )


PLACES = [in_an_initializer, in_a_constant, in_a_body, in_a_sparse_one, in_a_function, in_a_second_graph]


@pytest.mark.parametrize("place", PLACES)
def test_external_data_is_found_wherever_it_stands(exported: tuple[bytes, bytes], place: Callable[..., Any]) -> None:
    model = onnx.load_from_string(exported[0])
    assert not may_have_external_data(io.BytesIO(exported[0]))
    content = place(model) or model.SerializeToString()
    assert may_have_external_data(io.BytesIO(content))
    assert may_have_external_data(io.BytesIO(content + trailer(content)))


def test_what_is_no_model_may_have_external_data(exported: tuple[bytes, bytes]) -> None:
    content = exported[0]
    ends = [at for at in range(1, len(content)) if not may_have_external_data(io.BytesIO(content[:at]))]
    whole = [at for at in ends if _is_model(content[:at])]
    assert ends == whole, "cut off within a field"
    for bad in (b"\x00", b"\xff" * 11, b"\x0b\x0c", b"\x3a\xff\xff\xff\xff\x7f", b"\x08", b"\x80"):
        assert may_have_external_data(io.BytesIO(bad)), bad


def _is_model(content: bytes) -> bool:
    try:
        onnx.load_from_string(content)
    except Exception:
        return False
    return True


def test_a_model_with_a_value_called_location_opens_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    modgraph.export(
        modgraph.loads("model m() { input location: float[3] y = location -> linear(2) output y }").build(), path
    )
    with path.open("rb") as file:
        assert may_have_external_data(file)
    assert Bundle(path).run({"location": X["x"]})["y"].shape == (1, 2)


@needs_paths
def test_external_data_reaches_no_open_file_of_the_process(exported: tuple[bytes, bytes], tmp_path: Path) -> None:
    """Beside the path of an open file stand those of all others."""
    secret = tmp_path / "secret"
    secret.write_bytes(np.ones(9, np.float32).tobytes())
    model = onnx.load_from_string(exported[0])
    with secret.open("rb") as file:
        model.graph.initializer.append(elsewhere(str(file.fileno())))
        for node in model.graph.node:
            node.output[:] = ["within" if name == "y" else name for name in node.output]
        model.graph.node.append(helper.make_node("Add", ["within", "w"], ["y"]))
        content = model.SerializeToString()
        (tmp_path / "m.onnx").write_bytes(content + trailer(content))
        with pytest.raises(BundleError, match="no ONNX model that can be loaded"):
            Bundle(tmp_path / "m.onnx")
