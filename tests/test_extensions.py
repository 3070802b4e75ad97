"""Ops and routers of the user's own package, found by entry point."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

OPS = '''
from modgraph.declare import Operand, TorchModule, Weight, setting, uniform
from modgraph.ops import Op
from modgraph.routers import Router

class Bend(Op):
    """y = W x + strength · sin(W x)."""

    name = "bend"
    example = "input x: float[4] y = x -> bend(3) output y"
    operands = (Operand("x", "... D"),)
    results = ("... width",)
    weights = (Weight("weight", "width D", uniform("D")),)
    module = TorchModule("my_package.nn.Bend", "D", "width", strength="strength")

    width: int = setting(min=1, doc="length of the result")
    strength: float = setting(0.5, min=0, doc="of the bend")

    def macs(self, D: int) -> int:
        return D * self.width

class Everyone(Router):
    """The mean of all modules on every token."""

    name = "everyone"
    example = "input x: float[5, 4] pool p[2] = linear(4) router r = everyone y = x -> p by r output y"
    operands = (Operand("tokens", "... N D"),)
    results = ("... N V",)
    module = TorchModule("torch.nn.Identity")
    reference = "my_package.nn.Everyone"
    chooses_along = None
'''

NN = """
import torch
from torch import nn

class Bend(nn.Module):
    def __init__(self, width_in, width, strength):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, width_in))
        self.strength = strength

    def forward(self, x):
        y = x @ self.weight.T
        return y + self.strength * y.sin()

class Everyone(nn.Module):
    def forward(self, tokens, pool, router, length=None):
        return pool.all(tokens).mean(-2)
"""

USE = """
import modgraph, torch
text = "model m() { input x: float[5, 4] pool p[3] = bend(6) router r = everyone y = x -> p by r -> bend(2) output y }"
program = modgraph.loads(text)
assert program.cost().parameters == 3 * 24 + 12
assert program.build()(torch.zeros(2, 5, 4)).shape == (2, 5, 2)
modgraph.export(program.build(), "m.onnx")
try:
    modgraph.loads(text.replace("bend(6)", "bend(6, strngth=1)"))
except modgraph.ModgraphError as error:
    assert 'did you mean "strength"' in str(error)
else:
    raise SystemExit("the mistake was not told")
"""


def test_a_package_of_the_users_own_brings_ops_and_routers(tmp_path: Path) -> None:
    package = tmp_path / "my_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "ops.py").write_text(OPS)
    (package / "nn.py").write_text(NN)
    installed = tmp_path / "my_package-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[modgraph]\nmine = my_package.ops\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", USE], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
