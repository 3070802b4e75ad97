"""What is not needed is not imported: a command answers as fast as what it does allows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.examples import AGREEING as SPEC

RECIPE = "data: {name: npz, train: data.npz, test: data.npz}\ntrain: {epochs: 1, batch: 4}\n"

FRONT_END = """
import contextlib, sys
import modgraph
from modgraph.cli import main

def done(*command):
    try:
        assert main(command) == 0, command
    except SystemExit as end:
        assert end.code == 0

def needs_none_of(*libraries):
    assert not set(libraries) & set(sys.modules), set(libraries) & set(sys.modules)

HEAVY = ("networkx", "torch", "torch_geometric", "onnx", "onnxruntime", "sklearn", "scipy", "vl_convert")
done("--version")
needs_none_of("numpy", "lark", "modgraph.ops", "modgraph.ir", "modgraph.elaboration", *HEAVY)
done("--help")
needs_none_of("numpy", "lark", *(name for name in sys.modules if name.endswith("_command")))
done("train", "--help")
needs_none_of("numpy", "lark", *HEAVY)
done("check", "m.mod")
needs_none_of("numpy", *HEAVY)
for command in (("show", "m.mod"), ("cost", "m.mod"), ("explain", "linear")):
    done(*command)
    needs_none_of("numpy", *HEAVY)
for suffix in ("html", "svg", "dot", "mmd"):
    done("visualize", "m.mod", "-o", "m." + suffix)
    needs_none_of("torch", "torch_geometric", "onnxruntime", "sklearn", "scipy", "vl_convert")
done("explain", "em")
needs_none_of(*HEAVY)
"""

TRAINING = """
import modgraph.training.run, modgraph.trace.trace_run
modgraph.load("m.mod").build()
modgraph.loads("model words() { input x: token[time, 3] y = x -> embedding(2) output y }").build()
UNUSED = ("torch_geometric", "onnx", "torch._dynamo", "sympy", "sklearn", "scipy", "PIL", "pandas")
needs_none_of(*UNUSED, "tensorboard")
done("train", "m.mod", "--out", "run")
done("eval", "run")
needs_none_of(*UNUSED, "onnxruntime")
"""

EXPORT = """
done("export", "run", "-o", "m.onnx")
done("trace", "run", "--route", "p")
needs_none_of("torch_geometric", "vl_convert")
done("trace", "run")
needs_none_of("torch_geometric")
model = modgraph.load("m.mod").build(lowering="message_passing")
import torch
assert model(torch.zeros(2, 3, 4)).shape == (2, 2)
assert "torch_geometric" in sys.modules
"""


@pytest.mark.parametrize("more", ["", pytest.param(EXPORT, marks=pytest.mark.slow)], ids=["trained", "exported"])
def test_torch_and_torch_geometric_are_imported_where_they_run(more: str, tmp_path: Path) -> None:
    (tmp_path / "m.mod").write_text(SPEC)
    (tmp_path / "m.yaml").write_text(RECIPE)
    np.savez(tmp_path / "data.npz", x=np.zeros((8, 3, 4), np.float32), label=np.arange(8) % 2)
    code = FRONT_END + TRAINING + more
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
