"""`modgraph compile RUN`: a run's model as PyTorch source with its weights, as a bundle, and as a graph."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from modgraph.cli import main
from modgraph.training.stored_run import load_run

SPEC = """model m(experts=2) {
  input x: float[2] target y: float[2]
  pool expert[experts] = linear(2)
  gates = x -> linear(expert) -> softmax
  z = x -> expert by gates output z loss mse(z, y)
}"""
RECIPE = "data: {name: two_gaussians, train: 64, test: 8}\ntrain: {epochs: 2, batch: 16}\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    (folder / "m.mod").write_text(SPEC)
    (folder / "m.yaml").write_text(RECIPE)
    assert main(["train", str(folder / "m.mod"), "--out", str(folder / "run"), "-q"]) == 0
    return folder / "run"


def use_of(source: Path) -> str:
    """The lines of code in the docstring of a file."""
    doc = ast.get_docstring(ast.parse(source.read_text()))
    assert doc is not None
    lines = [line.strip() for line in doc.splitlines() if line.startswith("    ")]
    assert len(lines) == 3, "three lines say how to use it"
    return "\n".join(lines)


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["model.py", "my-model.py"])
def test_the_source_of_a_run_loads_its_weights(name: str, run: Path, tmp_path: Path) -> None:
    assert main(["compile", str(run), "-o", str(tmp_path / name), "-q"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, name.replace(".py", ".safetensors")])
    x = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    script = f"import torch; x = torch.tensor({x.tolist()})\n{use_of(tmp_path / name)}\n"
    script += "import json, sys; print(json.dumps((output[0] if isinstance(output, tuple) else output).tolist()))\n"
    script += "assert not [each for each in sys.modules if each.startswith('modgraph')]"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    expected = load_run(run).model()(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(json.loads(done.stdout), expected, rtol=1e-5, atol=1e-6)


def test_files_are_overwritten_if_modgraph_wrote_them(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.py"
    for _ in range(2):
        assert main(["compile", str(run), "-o", str(path)]) == 0, capsys.readouterr().err
    path.with_suffix(".safetensors").write_bytes(b"somebody's")
    assert main(["compile", str(run), "-o", str(path)]) == 1
    assert "model.safetensors" in capsys.readouterr().err


def test_a_run_becomes_a_bundle_and_a_graph(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from modgraph_runtime import Bundle

    assert main(["compile", str(run), "-o", str(tmp_path / "m.onnx")]) == 0
    x = np.ones((3, 2), np.float32)
    expected = load_run(run).model()(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(Bundle(tmp_path / "m.onnx").run({"x": x})["z"], expected, rtol=1e-5, atol=1e-6)
    assert main(["compile", str(run), "-o", str(tmp_path / "graph.json")]) == 0
    assert json.loads((tmp_path / "graph.json").read_text())["name"] == "m"
    capsys.readouterr()
    assert main(["compile", str(run), "--lowering", "message_passing"]) == 0
    assert "message_passing" in capsys.readouterr().out.replace(" ", "_")


def test_nothing_is_set_in_a_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", str(run), "-s", "experts=3"]) == 1
    assert "error[MG633]" in capsys.readouterr().err
