"""Ops, routers, data sets and algorithms of users' packages, found by entry point; and packages that fail."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import modgraph
from modgraph.backends.torch.source import write_source
from modgraph.backends.torch.source.vendored import module
from modgraph.cli import main
from modgraph.declare import Registry, load_extensions
from modgraph.diagnostics import Source
from modgraph.lsp.analysis import analyse
from modgraph.lsp.queries import complete
from modgraph.training.stored_run import load_run

OPS = '''
from modgraph.declare import Operand, TorchModule, Weight, setting, uniform
from modgraph.ops import Op
from modgraph.routers import Router

class Bend(Op, name="bend"):
    """y = W x + strength · sin(W x)."""

    example = "input x: float[4] y = x -> bend(3) output y"
    operands = (Operand("x", "... D"),)
    results = ("... width",)
    weights = (Weight("weight", "width D", uniform("D")),)
    module = TorchModule("my_package.nn.Bend", "D", "width", strength="strength")

    width: int = setting(min=1, doc="length of the result")
    strength: float = setting(0.5, min=0, doc="of the bend")

    def macs(self, D: int) -> int:
        return D * self.width

class Everyone(Router, name="everyone"):
    """The mean of all modules on every token."""

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
    def forward(self, tokens, pool, router, mask=None):
        return pool.all(tokens).mean(-2)
"""

DOCUMENT = Path("docs/adding-an-op.md").read_text().split("recipes choose them by name", 1)[1]
TRAINING = textwrap.dedent(DOCUMENT.split("\n\n", 1)[1].split("\n`explain NAME`", 1)[0])

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs packages in a folder: modules by name, each an entry point unless it is `nn`."""
    before = {kind: dict(registry) for kind, registry in Registry.all.items()}
    packages = []

    def installed(package: str = "my_package", **modules: str) -> Path:
        packages.append(package)
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
        for name, text in modules.items():
            (tmp_path / package / f"{name}.py").write_text(text)
        information = tmp_path / f"{package}-1.0.dist-info"
        information.mkdir()
        distribution = package.replace("_", "-")
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        points = "".join(f"{name} = {package}.{name}\n" for name in modules if name != "nn")
        (information / "entry_points.txt").write_text(f"[modgraph]\n{points}")
        return tmp_path

    load_extensions.cache_clear()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield installed
    load_extensions.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
        del sys.modules[name]
    for kind, registry in Registry.all.items():
        registry.clear()
        registry.update(before[kind])


# ---------------------------------------------------------------- what a package adds

SPEC = "model m() { input x: float[5, 4] pool p[3] = bend(6) router r = everyone y = x -> p by r -> bend(2) output y }"


def test_a_package_of_the_users_own_brings_ops_and_routers(install: Install) -> None:
    install(ops=OPS, nn=NN)
    program = modgraph.loads(SPEC)
    assert program.cost().parameters == 3 * 24 + 12
    assert program.build()(torch.zeros(2, 5, 4)).shape == (2, 5, 2)
    modgraph.export(program.build(), "m.onnx")
    with pytest.raises(modgraph.ModgraphError, match='did you mean "strength"'):
        modgraph.loads(SPEC.replace("bend(6)", "bend(6, strngth=1)"))


def test_the_memory_of_a_step_is_that_of_a_packages_ops_too(install: Install) -> None:
    """y, sin(y) and y + strength · sin(y) are made; torch keeps x and y of each map, and the messages' count."""
    install(ops=OPS, nn=NN)
    text = "model m() { input x: float[64, 32] y = x -> bend(48) -> bend(16) output y }"
    memory, kept = modgraph.loads(text).memory(batch=8), 4 * 8 * 64
    assert memory.activations == kept * (48 + 48 + 16), "W x of both, and what the second takes"
    assert memory.weights == memory.gradients == 4 * (32 * 48 + 48 * 16)


def test_what_no_step_without_numbers_can_compute_is_reported_with_its_reason(install: Install) -> None:
    install(ops=OPS, nn=NN.replace("y = x @ self.weight.T", "y = x[x > 0].sum() * x @ self.weight.T"))
    program = modgraph.loads(SPEC.replace("bend(6)", "linear(6)"))
    assert program.build()(torch.zeros(2, 5, 4)).shape == (2, 5, 2)
    with pytest.raises(modgraph.ModgraphError, match=r"MG716[\s\S]*cannot measure"):
        program.memory()


def test_a_source_holds_the_layers_of_a_package_if_they_need_only_torch(install: Install) -> None:
    folder = install(ops=OPS, nn=NN)
    model = modgraph.loads(SPEC).build(seed=1)
    names: dict[str, Any] = {"__name__": "model"}
    sys.modules["model"] = ModuleType("model")
    source = write_source(model)
    exec(source, names)
    other = names["M"]()
    other.load_state_dict(model.state_dict())
    x = torch.randn(2, 5, 4)
    assert torch.equal(other(x), model(x))
    assert "my_package" not in source
    (folder / "my_package" / "nn.py").write_text(
        NN.replace("y.sin()", "y * numpy.pi").replace("import", "import numpy\nimport", 1)
    )
    module.cache_clear()
    with pytest.raises(
        modgraph.ModgraphError, match=r"cannot copy my_package\.nn into a standalone file: it needs numpy"
    ):
        write_source(model)


ELSEWHERE = """y = x @ self.weight.T
        if __name__ != "my_package.nn":
            """


@pytest.mark.parametrize(
    ("otherwise", "message"),
    [
        ("y = 2 * y", "computes output y with a difference of "),
        ("y = y.sum(0)", "computes output y of shape [2] in place of [2, 5, 2]"),
        ("y = y.no_such_method()", "does not run: AttributeError"),
    ],
)
def test_a_source_that_computes_otherwise_is_not_written(
    otherwise: str, message: str, install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = install(ops=OPS, nn=NN.replace("y = x @ self.weight.T", ELSEWHERE + otherwise))
    module.cache_clear()
    (folder / "m.mod").write_text(SPEC)
    (folder / "m.py").touch()
    assert main(["compile", "m.mod", "-o", "m.py"]) == 3
    error = capsys.readouterr().err
    assert "error[MG866]" in error
    assert message in error
    assert not (folder / "m.py").read_text(), "a file that computes otherwise took the place of another"
    assert not list(folder.glob(".*")), "a part of a file is left"


def test_a_recipe_trains_with_the_data_and_the_algorithm_of_a_package(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = install(training=TRAINING)
    recipe = "train: {epochs: 2, batch: 4, algorithm: {name: careful, share: 0}, optimizer: plain}\n"
    (folder / "m.yaml").write_text("data: {name: doubles, count: 12}\n" + recipe)
    (folder / "m.mod").write_text(
        "model m() { input x: float[1] target y: float[1] z = x -> linear(1) output z loss task = (z, y) -> mse }"
    )
    assert main(["train", "m.mod", "--out", "run"]) == 0, capsys.readouterr().err
    metrics = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert metrics["steps"] == 6
    start = modgraph.load("m.mod").build(0).state_dict()
    found = load_run("run").checkpoint().weights
    assert all(found[name].equal(start[name]) for name in start)  # a share of nothing moves nothing
    assert np.isfinite(metrics["test.mse"])
    assert main(["eval", "run"]) == 0


def test_what_a_package_adds_has_a_page_and_is_suggested(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install(ops=OPS, training=TRAINING)
    for name, words in (
        ("bend", "of the bend"),
        ("doubles", "how many"),
        ("careful", "share: 0.5"),
        ("plain", "optimizer"),
    ):
        assert main(["explain", name]) == 0
        assert words in capsys.readouterr().out
    assert main(["explain", "--all"]) == 0
    reference = capsys.readouterr().out
    assert all(f"`{title}" in reference for title in ("op bend", "data set doubles", "algorithm careful"))
    text = "model m() { input x: float[4] y = x -> "
    assert "bend" in {each.label for each in complete(analyse(Source("m.mod", text)), len(text))}
    assert main(["explain", "dubles"]) == 1
    assert 'did you mean "doubles"' in capsys.readouterr().err


# ---------------------------------------------------------------- packages that fail

BROKEN = {
    "import": ("import no_such_library", "ModuleNotFoundError: No module named 'no_such_library'"),
    "syntax": ("def f(:", "SyntaxError"),
    "exit": ("raise SystemExit(7)", "SystemExit: 7"),
    "taken": (OPS.replace('"bend"', '"linear"'), 'TypeError: two declarations of kind op are called "linear"'),
    "without words": (OPS.replace('"""y = W x', '"".join(""), """'), 'op "bend" needs a docstring'),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_package_that_fails_is_named_with_the_unknown_name(
    install: Install, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text, words = BROKEN[kind]
    folder = install(broken=text)
    (folder / "m.mod").write_text("model m() { input x: float[4] y = x -> benn(3) -> bent(3) output y }")
    assert main(["check", "m.mod"]) == 1
    message = capsys.readouterr().err
    assert message.count("error[MG133]") == 1
    assert message.count("error[MG202]") == 2
    assert '"my-package"' in message and '"my_package.broken"' in message
    assert words in message
    assert "help: update or repair the package, or remove it: pip uninstall my-package" in message


def test_it_is_reported_at_whatever_command(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    folder = install(ops=OPS, nn=NN)
    (folder / "m.mod").write_text(SPEC)
    record = modgraph.load("m.mod").ir
    install("other_package", broken="raise OSError(5, 'a disk')")
    load_extensions.cache_clear()
    (folder / "n.mod").write_text(SPEC.replace("everyone", "anyone"))
    (folder / "r.yaml").write_text("data: nothing\ntrain: {algorithm: nothing}")
    for command in (
        ["check", "n.mod"],
        ["cost", "n.mod"],
        ["compile", "n.mod"],
        ["train", "m.mod", "--recipe", "r.yaml"],
        ["explain", "anyone"],
    ):
        assert main(command) == 1
        message = capsys.readouterr().err
        assert message.count("error[MG133]") == 1, command
        assert "OSError: [Errno 5] a disk" in message
        assert "fault of modgraph" not in message
    assert main(["check", "m.mod"]) == 0  # what the other package adds is known
    assert record == modgraph.load("m.mod").ir


def test_a_stored_graph_that_needs_a_package_which_fails_names_it(install: Install) -> None:
    install(ops=OPS, nn=NN)
    from modgraph.ir import UnreadableGraph, from_json, to_json

    stored = to_json(modgraph.loads(SPEC).ir)
    for kind in ("op", "router"):
        Registry.all[kind].pop("bend", None)
    load_extensions.cache_clear()
    sys.modules.pop("my_package.ops")
    Registry.all["router"].pop("everyone")
    Path("my_package/ops.py").write_text("import no_such_library")
    with pytest.raises(modgraph.ModgraphError, match="MG133") as caught:
        from_json(stored)
    assert "the graph uses" in str(caught.value)
    Path("my_package-1.0.dist-info/entry_points.txt").write_text("")
    load_extensions.cache_clear()
    with pytest.raises(UnreadableGraph, match="does not know"):
        from_json(stored)


def test_what_a_package_declared_before_it_failed_is_taken_back(install: Install) -> None:
    install(broken=OPS + "\nimport no_such_library\n")
    with pytest.raises(modgraph.ModgraphError, match="MG133"):
        modgraph.loads(SPEC)
    assert "bend" not in Registry.all["op"] and "everyone" not in Registry.all["router"]
    assert modgraph.loads("model m() { input x: float[4] y = x -> linear(3) output y }")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "ModuleNotFoundError: No module named 'my_package.nn'"),
        ("from torch import nn\n", "AttributeError: module 'my_package.nn' has no attribute 'Bend'"),
        ("import no_such_library\n", "my_package/nn.py, line 1"),
    ],
)
def test_a_torch_module_that_fails_is_named(
    install: Install, text: str | None, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = install(ops=OPS, **({} if text is None else {"nn": text}))
    (folder / "m.mod").write_text(SPEC)
    assert main(["check", "m.mod"]) == 0
    assert main(["compile", "m.mod"]) == 1
    message = capsys.readouterr().err
    assert message.count("error[MG134]") == 1
    assert words in message
    assert "remove it: pip uninstall my_package" in message
