"""Models as PyTorch source: files that need torch alone and compute the same."""

from __future__ import annotations

import ast
import subprocess
import sys
from itertools import islice
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest
import torch
from modgraph_runtime.integrity import is_of_modgraph, seal
from torch import Tensor, nn

import modgraph
from modgraph.backends.report import random_batch
from modgraph.backends.torch import Model
from modgraph.backends.torch.source import verify_source, write_source
from modgraph.backends.torch.source.text import argument
from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from tests.assault.sound import sound
from tests.examples import GRU, OP_EXAMPLES, ROUTER_EXAMPLES, ROUTERS_IN_SCAN
from tests.nested_pools import SHARED_WEIGHTS

GOLDEN = Path(__file__).parent / "golden"
SPECS: dict[str, dict[str, Any]] = {  # small, where a spec is large
    "gmoe": {"depth": 3, "sparse": [1], "dim": 24, "heads": 3, "classes": 5},
    "gmoe_digits": {},
    "modular_networks": {},
    "modular_networks_images": {},
    "modular_networks_lm": {},
    "mt_rmn": {},
    "sema": {"depth": 3, "dim": 24, "heads": 3, "size": 32, "adapters": [1, 2, 1], "expands": [1, 2]},
    "sema_backbone": {},
    "smn": {},
    "smn_parity": {},
    "zoo/expert_choice": {},
    "zoo/mixtral": {},
    "zoo/soft_moe": {},
    "zoo/switch": {},
}


def made_of(source: str) -> nn.Module:
    """The model of a file: the last class in it."""
    module = ModuleType("of_a_user")
    sys.modules["of_a_user"] = module
    exec(compile(source, "model.py", "exec"), vars(module))
    last = [each.name for each in ast.parse(source).body if isinstance(each, ast.ClassDef)][-1]
    found: nn.Module = vars(module)[last]()
    return found


def computed(
    model: nn.Module, batch: dict[str, Tensor], losses: bool = True
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The outputs and losses of a model, ours or that of a file, and the gradients that the losses leave."""
    torch.manual_seed(0)
    model.zero_grad()
    if isinstance(model, Model):
        given = model.compute(batch, losses=losses, moves=False)
        outputs, found = given.outputs, given.losses
    else:
        result = model(**{argument(name): value for name, value in batch.items()})
        outputs, found = result if isinstance(result, tuple) else (result, {})
        found = found if losses else {}
        outputs = outputs if isinstance(outputs, dict) else {"": outputs}
    total = sum(found.values()) if found else sum(each.double().square().sum() for each in outputs.values())
    if isinstance(total, Tensor) and total.requires_grad:
        total.backward()
    return {**dict(enumerate(outputs.values())), **found}, {  # type: ignore[dict-item]
        name: each.grad.to_dense() for name, each in model.state_dict(keep_vars=True).items() if each.grad is not None
    }


def same(found: Tensor, expected: Tensor, close: float, name: object) -> None:
    """Two ways to add up the same numbers differ in the last digits of the largest."""
    size = max(1.0, expected.nan_to_num(0, 0, 0).abs().max().item()) if expected.numel() else 1.0
    torch.testing.assert_close(
        found, expected, rtol=0, atol=close * size, equal_nan=True, msg=lambda text: f"{name}: {text}"
    )


def check(model: Model) -> str:
    """A model and its file side by side, in inference and in training, with full examples and shorter ones."""
    source = verify_source(model, random_batch(model))
    assert not any(each in source for each in ("is_exporting()", "_process.shard")), "that is no part of such files"
    other = made_of(source)
    assert sorted(other.state_dict()) == sorted(model.state_dict())
    other.load_state_dict(model.state_dict())
    learnt = [
        {name: each.requires_grad for name, each in of.state_dict(keep_vars=True).items()} for of in (other, model)
    ]
    assert learnt[0] == learnt[1]
    types = model.graph.input_types
    lengths = {name: torch.tensor([3, 1]) for name, type_ in types.items() if type_.dtype == "length"}
    for training in (False, True):
        for batch in (random_batch(model), {**random_batch(model), **lengths})[: 1 + bool(lengths)]:
            expected, gradients = computed(model.train(training), batch)
            found, others = computed(other.train(training), batch)
            assert expected.keys() == found.keys()
            assert gradients.keys() == others.keys()
            for name, value in expected.items():
                same(found[name], value, 1e-5, name)
            for name, gradient in gradients.items():
                same(others[name], gradient, 1e-4, f"the gradient of {name}")
    without = {name: value for name, value in batch.items() if name in types}
    for name, value in computed(model.eval(), without, losses=False)[0].items():
        found = computed(other.eval(), without, losses=False)[0][name]
        same(found, value, 1e-5, f"{name} without targets")
    return source


@pytest.mark.some(2)
@pytest.mark.parametrize("name", SPECS)
def test_a_spec_as_source_computes_the_same(name: str) -> None:
    source = check(modgraph.load(f"specs/{name}.mod", **SPECS[name]).build(seed=1))
    assert max(map(len, source.splitlines())) < 200


@pytest.mark.some(30)
@pytest.mark.parametrize("text", [*OP_EXAMPLES.values(), *ROUTER_EXAMPLES.values(), *ROUTERS_IN_SCAN.values(), GRU])
def test_every_op_and_router_as_source_computes_the_same(text: str) -> None:
    check(modgraph.loads(text).build(seed=1))


@pytest.mark.parametrize("lowering", ["dense", "factorised"])
def test_lowerings_of_routes_by_weights(lowering: str) -> None:
    check(modgraph.load("specs/smn.mod", iterations=2).build(lowering=lowering))


@pytest.mark.some(2)
@pytest.mark.parametrize("lowering", ["gathered", "grouped", "masked", "per_module"])
def test_lowerings_of_routes_by_choice(lowering: str) -> None:
    check(modgraph.load("specs/modular_networks_lm.mod").build(lowering=lowering))


@pytest.mark.some(8)
@pytest.mark.parametrize("seed", [22, 210, *range(300, 320)])
def test_specs_written_at_random(seed: int) -> None:
    try:
        model = modgraph.loads(sound(Random(seed))).build(seed=1)
        model.eval().compute(random_batch(model))
    except (ModgraphError, RuntimeError):
        pytest.skip("this one is refused, or cannot be run")
    check(model)


STANDALONE = """
import importlib.abc, sys
class Refused(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("modgraph", "modgraph_runtime", "torch_geometric", "networkx", "lark"):
            raise ImportError(name)
sys.meta_path.insert(0, Refused())
import importlib.util, torch
from pathlib import Path
for path in sorted(Path(sys.argv[1]).glob("*.py")):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    kept = torch.load(path.with_suffix(".pt"), weights_only=True)
    model = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == path.stem][-1]()
    model.load_state_dict(kept["weights"])
    with torch.no_grad():
        found = model.eval()(**kept["inputs"])
    found = found if isinstance(found, dict) else {"": found}
    assert all(torch.allclose(*each, atol=1e-5) for each in zip(found.values(), kept["outputs"], strict=True)), path
    print(path.stem)
"""


@pytest.mark.parametrize("share", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_the_files_of_specs_run_where_there_is_only_torch(share: int, tmp_path: Path) -> None:
    specs = dict(islice(SPECS.items(), 0, None, share))
    for name, parameters in specs.items():
        model = modgraph.load(f"specs/{name}.mod", **parameters).build(seed=2).eval()
        batch = {key: value for key, value in random_batch(model).items() if key in model.graph.input_types}
        with torch.no_grad():
            outputs = [*model.compute(batch, losses=False).outputs.values()]
        path = tmp_path / name.replace("/", "_")
        path.with_suffix(".py").write_text(write_source(model))
        torch.save({"weights": model.state_dict(), "inputs": batch, "outputs": outputs}, path.with_suffix(".pt"))
    command = [sys.executable, "-c", STANDALONE, str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert found.returncode == 0, found.stderr
    assert len(found.stdout.split()) == len(specs)


@pytest.mark.parametrize("name", ["smn", "gmoe_digits"])
def test_files_that_people_read(name: str, request: pytest.FixtureRequest) -> None:
    source = write_source(modgraph.load(f"specs/{name}.mod").build())
    path = GOLDEN / f"{name}.py"
    if request.config.getoption("--refresh"):
        path.write_text(source)
    assert source == path.read_text()


def test_weights_begin_as_the_spec_declares_them() -> None:
    model = modgraph.load("specs/gmoe_digits.mod").build(seed=1)
    other = made_of(write_source(model)).state_dict()
    for name, weight in model.state_dict().items():
        if weight.numel() > 1 and weight.std() > 0:
            assert other[name].std() == pytest.approx(weight.std().item(), rel=3 / weight.numel() ** 0.5), name
        else:
            assert torch.equal(other[name], weight), name


NAMES = """
model lambda_() {
  input  lambda: float[4]
  target class: class[3]
  module train = linear(4)
  x = lambda -> train
  repeat half[i] in 0..2 { x = x -> relu -> linear(4, name="del") -> relu }
  self = x -> linear(3, name="type")
  output self
  loss cross_entropy(self, class)
}
"""


def test_blocks_and_pools_in_a_pools_modules_have_what_these_share() -> None:
    check(modgraph.loads(SHARED_WEIGHTS).build())


def test_names_that_mean_something_else_in_python() -> None:
    check(modgraph.loads(NAMES).build(seed=1))


@pytest.mark.some(2)
@pytest.mark.parametrize("labels", ["", ", ignore=2", ", class_weights=[1, 2, 3]", ', reduce="sum"', ", since=1"])
def test_losses_that_are_no_single_line(labels: str) -> None:
    text = f"loss cross_entropy(y, label{labels}) loss importance(r, s, t)"
    pools = " ".join(f"pool p{each}[3] = linear(3) router {each} = noisy_top_k(2)" for each in "rst")
    routes = " ".join(f"v{each} = x -> p{each} by {each}" for each in "rst")
    net = f"model m() {{ input x: float[4, 3] target label: class[3] {pools} {routes}"
    check(modgraph.loads(f"{net} y = vr + vs + vt -> mean(axis=-2) output y {text} }}").build(seed=1))


@pytest.mark.parametrize("value", ["t", "2 * t -> relu", "exp(t) + t"])
def test_a_target_that_is_read_only_in_training(value: str) -> None:
    text = f"h = x + ((({value}), x * 2) -> training_or_inference) y = h -> linear(4)"
    net = f"model m() {{ input x: float[4] target t: float[4] {text} output y loss mse(y, t) }}"
    check(modgraph.loads(net).build(seed=1))


PLACES = {  # in which lines are written that need something from elsewhere
    "a scan in a repeat after a layer outside": """
        w = x -> linear(4)
        repeat round[i] in 0..2 {
          scan words as word with h: float[4] { h = h -> linear(4) -> tanh yield h } as s
          w = w + s -> linear(4) -> relu
        }
        h = w -> mean
        loss mse(h, t)""",
    "several values that are sent in a scan": """
        pool cell[3] = mixed(4)
        router r = noisy_top_k(2)
        scan x as e with h: float[4] { h = (e, h) -> cell by r yield h } as s
        h = s -> mean
        loss mse(h, t)""",
    "losses in a loop whose values are bound again": """
        h = x -> mean -> linear(4)
        repeat round[i] in 0..3 {
          loss step[i] = mse(h, t)
          h = h + (h -> relu) * h + (h -> linear(4))
        }""",
    "a value of a loss that each round binds again": """
        weight w: float[4] = normal(0.5)
        h = x -> mean -> linear(4)
        e = h
        repeat round[i] in 0..3 {
          e = (h - t) * e
          h = h * w + (h -> relu) * h + (h -> linear(4))
        }
        loss off = e -> mean(axis=-1)""",
}
MIXED = "block mixed(dim) { input a: float[dim] input b: float[dim] y = (a, b * a) -> concat -> linear(dim) output y }"


@pytest.mark.parametrize("place", PLACES)
def test_lines_that_need_something_from_elsewhere(place: str) -> None:
    inputs = "input x: float[time, 4] input words: token[time, 7] target t: float[4]"
    check(modgraph.loads(f"{MIXED} model m() {{ {inputs} {PLACES[place]} output h }}").build(seed=1))


PAPERS = sorted(path.stem for path in Path("tests/papers").glob("*.mod"))


@pytest.mark.some(2)
@pytest.mark.parametrize("name", PAPERS)
def test_a_paper_as_source_computes_the_same(name: str) -> None:
    check(modgraph.load(f"tests/papers/{name}.mod").build(seed=1, pools="modules"))


def test_what_needs_more_than_torch_is_no_file_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = modgraph.load("specs/smn.mod", iterations=1).build(lowering="message_passing")
    with pytest.raises(ModgraphError, match="torch_geometric"):
        write_source(model)
    arguments = ["compile", "specs/smn.mod", "-s", "iterations=1", "--lowering", "message_passing"]
    assert main([*arguments, "-o", str(tmp_path / "model.py")]) == 1
    assert "MG865" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_a_scan_draws_what_nothing_reads() -> None:
    text = """model m() { input a: float[3, 4] scan a as v with h: float[4] {
      pool p[2] = linear(4) router r = categorical u = v -> p by r
      h = (v, h) -> concat -> dropout(0.5) -> linear(4) yield h } as s output s }"""
    check(modgraph.loads(text).build())


def test_routes_that_share_messages_with_dropout() -> None:
    text = """model m() { input x: float[4, 8] pool p[3] = linear(8) -> dropout(0.5)
      router r = agreement(iterations=3) h = x -> p by r output h
      target t: class[3] loss cross_entropy(h -> mean -> linear(3), t) }"""
    check(modgraph.loads(text).build())


def test_a_file_that_its_user_has_changed_is_no_longer_ours(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(seal("import torch\n"))
    assert is_of_modgraph(path)
    path.write_text(path.read_text().replace("torch", "torch  # mine"))
    assert not is_of_modgraph(path)


def test_a_value_that_a_router_records_is_not_overwritten_before_it_is_returned() -> None:
    text = """model m() { input x: float[time, 4] pool p = [layer_norm -> linear(4)]
      router r = truncated_kernel(bias=true) y = x -> p by r output y loss 2 * importance(r) }"""
    check(modgraph.loads(text).build(seed=1))


def test_a_function_that_python_would_mangle_in_a_class() -> None:
    text = "model m() { input x: float[4] repeat __each[i] in 0..3 { x = x -> tanh -> sin } output x }"
    check(modgraph.loads(text).build(seed=1))
    block = "block __b() { input v: float[d] y = v -> sin -> tanh output y }"
    check(modgraph.loads(f"{block} model m() {{ input x: float[4] y = x -> __b output y }}").build(seed=1))


def test_a_frozen_pool_that_was_grown() -> None:
    text = "model m() { input x: float[2, 6] frozen { pool p[2] = linear(2) } grow p[2] y = x -> p output y }"
    check(modgraph.loads(text).build(seed=1))


@pytest.mark.parametrize("op", ["gru", "lstm"])
def test_a_file_registers_no_operator_with_torch(op: str) -> None:
    """As it would take those of modgraph along when it is forgotten."""
    source = write_source(modgraph.loads(f"model m() {{ input x: float[5, 2] y = x -> {op}(4) output y }}").build())
    assert "torch.library" not in source
