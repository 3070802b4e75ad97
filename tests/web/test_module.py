"""The ES module against the Python runtime: the same outputs, and the same words for what does not fit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from modgraph_runtime import Bundle, BundleError

import modgraph
from modgraph.data.digits import MinMaxDigits
from tests.examples import SEQUENCE
from tests.runtime.test_runtime import LIES, sealed, tampered
from tests.traces import shared_traces

WEB = Path("export/web")
NODE, MODULES = shutil.which("node"), WEB / "node_modules"
TSC = MODULES / "typescript" / "bin" / "tsc"
needs_node = pytest.mark.skipif(
    NODE is None or not MODULES.exists(), reason="needs Node, and npm ci --ignore-scripts in export/web"
)

ROUTED = """
model routed(dim=6) {
  input  image: float[1, 8, 8]
  input  domain: token[2, 5]
  target label: class[4]
  pool   expert[3] = linear(8) -> relu -> linear(dim)
  router best = noisy_top_k(1)
  x = image -> patch_embed(4, dim) -> expert by best
  d = domain -> embedding(dim)
  logits = (x -> mean) + (d -> mean) -> linear(4)
  output logits
  output domain
  loss cross_entropy(logits, label)
}
"""
SERIES = """
model series() {
  input  x: float[time, 3]
  target label: class[2]
  logits = x -> linear(4) -> tanh -> mean -> linear(2)
  output logits
  loss cross_entropy(logits, label)
}
"""
GRAPHS = """
model graphs() {
  input x: float[node, 3]
  input link: edge[node, node]
  h = (x, link) -> aggregate("mean")
  score = ((h, link) -> at_source) -> sum(axis=-1)
  u = x -> linear(4) by ((score, link) -> edge_softmax) over link
  output u
  output whole = u -> max(axis="node")
}
"""
Inputs = Mapping[str, Any]


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory, traces: Path) -> Path:
    """Images whose classes have names, words with lengths, and images with a routing and whole numbers beside them."""
    folder = tmp_path_factory.mktemp("web")
    with shared_traces(traces):
        smn = modgraph.load("specs/smn.mod", iterations=1).build()
        modgraph.export(smn, folder / "smn.onnx", routing=True, description=MinMaxDigits().description())
        modgraph.export(modgraph.loads(SEQUENCE).build(), folder / "words.onnx")
        modgraph.export(modgraph.loads(ROUTED).build(), folder / "routed.onnx", routing=True)
        modgraph.export(modgraph.loads(SERIES).build(), folder / "series.onnx")
        modgraph.export(modgraph.loads(GRAPHS).build(), folder / "graphs.onnx")
    return folder


def good_inputs() -> dict[str, tuple[str, Inputs]]:
    rng = np.random.default_rng(0)
    words = rng.integers(0, 20, (4, 7))
    image = rng.random((3, 1, 8, 8), np.float32)
    series, ends = rng.random((3, 4, 3), np.float32), np.array([2, 4, 1])
    behind = np.broadcast_to(np.arange(4)[:, None] >= ends[:, None, None], series.shape)
    unlike, link = (
        {"node_length": np.array([5, 2, 1]), "link_length": np.array([7, 4, 0])},
        rng.integers(0, 2, (3, 7, 2)),
    )
    link[0], link[1, 4:], link[2] = rng.integers(0, 5, (7, 2)), 99, -1  # ends of padding are no nodes
    return {
        "numbers behind the end": ("series", {"x": series, "time_length": ends}),
        "none behind the end": ("series", {"x": np.where(behind, np.nan, series), "time_length": ends}),
        "infinite behind the end": ("series", {"x": np.where(behind, 1e300, series), "time_length": ends}),
        "no words behind the end": (
            "words",
            {"words": np.where(np.arange(7) < [[7], [1], [0], [3]], words, 99), "time_length": np.array([7, 1, 0, 3])},
        ),
        "images": ("smn", {"image": rng.random((5, 1, 28, 28), np.float32)}),
        "no images": ("smn", {"image": np.zeros((0, 1, 28, 28))}),
        "images of whole numbers": ("smn", {"image": rng.integers(0, 2, (2, 1, 28, 28), np.uint8)}),
        "words": ("words", {"words": words}),
        "words with lengths": ("words", {"words": words.astype(np.int32), "time_length": np.array([7, 1, 0, 3])}),
        "rows": ("words", {"words": [[1, 2, 3], [4, 5, 6]]}),
        "routed": ("routed", {"image": image, "domain": rng.integers(0, 5, (3, 2))}),
        "booleans": ("routed", {"image": image > 0.5, "domain": [[0, 1]] * 3}),
        "equal logits": ("routed", {"image": image * 0, "domain": [[4, 4]] * 3}),
        "a graph": ("graphs", {"x": rng.random((1, 5, 3)), "link": link[:1]}),
        "unlike graphs": ("graphs", {"x": rng.random((3, 5, 3)), "link": link, **unlike}),
        "no edges": ("graphs", {"x": rng.random((2, 5, 3)), "link": link[1:, 4:5], "link_length": np.array([0, 0])}),
    }


def bad_inputs() -> dict[str, tuple[str, Any]]:
    image, words = np.zeros((1, 1, 28, 28)), np.zeros((2, 4), int)
    small, domain = np.zeros((2, 1, 8, 8)), np.zeros((2, 2), int)
    series = np.zeros((2, 3, 3))
    series[1, 1, 2], series[1, 2, 0] = np.nan, np.inf
    graphs = {"x": np.zeros((2, 4, 3)), "link_length": np.array([3, 1])}
    link = np.array([[[0, 3], [3, 0], [1, 1]], [[0, 3], [9, 9], [9, 9]]])
    return {
        "an edge that begins at no node": ("graphs", {**graphs, "link": link - 1}),
        "an edge that ends at no node": ("graphs", {**graphs, "link": link + np.array([0, 1])}),
        "an edge that ends at padding": ("graphs", {**graphs, "link": link, "node_length": np.array([4, 3])}),
        "no edges and no lengths": ("graphs", {"x": graphs["x"], "link": link[:, :0]}),
        "edges of three ends": ("graphs", {**graphs, "link": link[..., [0, 1, 1]]}),
        "fractions for ends": ("graphs", {**graphs, "link": link + 0.5}),
        "not a number, no lengths": ("series", {"x": series}),
        "not a number before the end": ("series", {"x": series, "time_length": [3, 2]}),
        "no word before the end": ("words", {"words": words - 1, "time_length": [4, 1]}),
        "lengths of another name": ("words", {"words": words, "time_lengths": [4, 1]}),
        "missing": ("smn", {}),
        "an array without a name": ("smn", [[1.0]]),
        "a number without a name": ("smn", 5),
        "one of two missing": ("routed", {"image": small}),
        "unknown": ("smn", {"picture": image}),
        "unknown beside words": ("words", {"words": words, "wrods": words}),
        "rank": ("smn", {"image": image[0, 0]}),
        "a number": ("smn", {"image": 5}),
        "nothing": ("smn", {"image": None}),
        "size": ("smn", {"image": image[..., :27]}),
        "text": ("smn", {"image": np.full((1, 1, 28, 28), "abc")}),
        "objects": ("smn", {"image": [[[[None] * 28] * 28]]}),
        "ragged": ("smn", {"image": [[1.0], [1.0, 2.0]]}),
        "ragged deeper": ("smn", {"image": [[1.0, 2.0], [1.0, [2.0]]]}),
        "not a number": ("smn", {"image": image * np.nan}),
        "infinite": ("smn", {"image": image + np.inf}),
        "too large": ("smn", {"image": image + 1e300}),
        "examples differ": ("routed", {"image": small, "domain": domain[:1]}),
        "unknown word": ("words", {"words": words + 20}),
        "negative word": ("words", {"words": words - 1}),
        "fractions for words": ("words", {"words": words + 0.5}),
        "yes and no for words": ("words", {"words": words == 0}),
        "no words": ("words", {"words": words[:, :0]}),
        "too long": ("words", {"words": words, "time_length": np.array([5, 1])}),
        "negative length": ("words", {"words": words, "time_length": [1, -1]}),
        "a length missing": ("words", {"words": words, "time_length": [1]}),
        "fractions for lengths": ("words", {"words": words, "time_length": [1.5, 2.0]}),
    }


def as_case(value: Any) -> Any:
    """An input as JSON: an array by its type, shape and values, those as text that JSON has no number for."""
    if not isinstance(value, np.ndarray):
        return value
    plain = [
        str(each) if isinstance(each, float) and not np.isfinite(each) else each for each in value.ravel().tolist()
    ]
    return {"dtype": str(value.dtype), "shape": list(value.shape), "values": plain}


def good_cases(folder: Path) -> list[dict[str, Any]]:
    found = []
    for title, (name, inputs) in good_inputs().items():
        bundle = Bundle(folder / f"{name}.onnx", threads=1)
        outputs = bundle.run(inputs, routing=True)
        best = {key: bundle.classify(key, outputs[key]) for key in bundle.outputs}
        case = {
            "title": title,
            "bundle": str(folder / f"{name}.onnx"),
            "inputs": {k: as_case(v) for k, v in inputs.items()},
        }
        caught = {key: {"shape": list(array.shape), "data": array.ravel().tolist()} for key, array in outputs.items()}
        predicted = {key: {"shape": list(array.shape), "data": array.ravel().tolist()} for key, array in best.items()}
        found.append({**case, "outputs": caught, "predicted": predicted})
    return found


def option_cases(folder: Path) -> list[dict[str, Any]]:
    found = []
    for options in ({"chunk": 0}, {"chunk": -1}, {"chunk": 2.5}):
        path = folder / "words.onnx"
        with pytest.raises(BundleError) as caught:
            Bundle(path, threads=1).run({}, **options)  # type: ignore[arg-type]
        found.append({"bundle": str(path), "options": options, "message": str(caught.value)})
    return found


def bad_cases(folder: Path) -> list[dict[str, Any]]:
    found = []
    for title, (name, inputs) in bad_inputs().items():
        path = folder / f"{name}.onnx"
        with pytest.raises(BundleError) as caught:
            Bundle(path, threads=1).run(inputs)
        plain = {k: as_case(v) for k, v in inputs.items()} if isinstance(inputs, dict) else inputs
        case = {"title": title, "bundle": str(path), "inputs": plain}
        found.append({**case, "message": str(caught.value)})
    return found


def damaged(folder: Path) -> list[Path]:
    """Files that are no bundles, or not as they were exported."""
    whole = (folder / "routed.onnx").read_bytes()
    contents = {
        "empty": b"",
        "text": b"not onnx",
        "cut": whole[:-1],
        "half": whole[: len(whole) // 2],
        "more": whole + b"\0",
    }
    for at in (0, 5, 20, len(whole) // 3, len(whole) - 100, len(whole) - 70, len(whole) - 1):
        contents[f"bit_{at}"] = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
    for name, content in contents.items():
        (folder / f"{name}.onnx").write_bytes(content)
    return [folder / f"{name}.onnx" for name in contents]


def lying(folder: Path) -> list[Path]:
    """Files whose digest is right, and whose manifest is not."""
    made = [folder / f"lie_{at}.onnx" for at in range(len(LIES))]
    paths = [tampered(folder / "smn.onnx", path, lie) for path, lie in zip(made, LIES.values(), strict=True)]
    paths.append(tampered(folder / "smn.onnx", folder / "format.onnx", lambda manifest: manifest.update(format=9)))
    for at, content in enumerate((b"\x08\x0a" * 50, b"")):
        paths.append(sealed(content, folder / f"sealed_{at}.onnx"))
    return paths


def refused(paths: list[Path]) -> list[dict[str, Any]]:
    found = []
    for path in paths:
        with pytest.raises(BundleError) as caught:
            Bundle(path)
        found.append({"path": str(path), "reason": caught.value.reason, "wayOut": caught.value.way_out})
    return found


@pytest.fixture(scope="module")
def cases(bundles: Path) -> Path:
    """What Python makes of inputs and files, for Node to compare."""
    path = bundles / "cases.json"
    known = {name: Bundle(bundles / f"{name}.onnx") for name in ("smn", "words", "routed")}
    caught = {
        "good": good_cases(bundles),
        "bad": bad_cases(bundles),
        "options": option_cases(bundles),
        "damaged": refused(damaged(bundles)),
        "lying": refused(lying(bundles)),
        "manifests": {str(bundle.path): bundle.manifest for bundle in known.values()},
        "ports": {
            str(bundle.path): {
                key: str(port) for key, port in {**bundle.inputs, **bundle.outputs, **bundle.routing}.items()
            }
            for bundle in known.values()
        },
    }
    path.write_text(json.dumps(caught, allow_nan=False))
    return path


def in_node(*arguments: str | Path, **surroundings: str | Path) -> str:
    """What Node prints, which is to end well."""
    environment = os.environ | {name: str(value) for name, value in surroundings.items()}
    command = [str(NODE), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def all_pass(name: str, **surroundings: str | Path) -> None:
    """The tests of a file in JavaScript, all of them run."""
    # --liftoff-only: WebAssembly is compiled once, and not a second time to run faster, which takes three seconds
    printed = in_node("--liftoff-only", "--test-reporter=tap", WEB / "tests" / name, **surroundings)
    assert "# skipped 0" in printed and "# tests 0" not in printed, printed


@needs_node
def test_bundles_compute_and_refuse_as_in_the_runtime(cases: Path) -> None:
    all_pass("bundles.test.js", MODGRAPH_CASES=cases)


@needs_node
def test_bytes_are_read_with_care() -> None:
    all_pass("bytes.test.js")


@needs_node
@pytest.mark.skipif(not TSC.exists(), reason="needs TypeScript: npm ci --ignore-scripts in export/web")
def test_programs_in_typescript_find_the_types() -> None:
    in_node(TSC, "--noEmit", "--project", WEB / "tests" / "types")
