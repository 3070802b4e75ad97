"""Published checkpoints: shards read one tensor at a time, fused and stacked tensors, parameters of config.json."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor

import modgraph
from modgraph.backends.torch import Model
from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.training.published import read_config
from modgraph.training.recipe import read_with_spec
from modgraph.training.start.inherit import Inherited, inherit_file
from modgraph.training.start.tensor_files import Tensors, open_tensors
from modgraph.training.start.weight_map import read_map
from tests.ordinary_run import some_examples

INDEX = "model.safetensors.index.json"
CHAIN = """model chain(layers=4, width=8) {
  input x: float[width]
  repeat part[i] in 0..layers { x = x -> linear(width, bias=false) }
  output x
}"""
OF_CHAIN = "weights: {a.*: part.*.x.linear.weight}"
BITS = {"i8": torch.int8, "f8": torch.float8_e4m3fn, "i64": torch.int64}


def save_shards(tensors: Mapping[str, Tensor], folder: Path, each: int = 1) -> Path:
    """Write some tensors to a shard, with an index; return the index."""
    names, of = [*tensors], {}
    places = range(0, len(names), each)
    for number, at in enumerate(places, start=1):
        shard = f"model-{number:05}-of-{len(places):05}.safetensors"
        save_file({name: tensors[name].contiguous() for name in names[at : at + each]}, folder / shard)
        of |= dict.fromkeys(names[at : at + each], shard)
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 0}, "weight_map": of}))
    return folder / INDEX


def chain(layers: int = 4, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(3)
    return {f"a.{at}": torch.randn(8, 8, generator=generator).to(dtype) for at in range(layers)}


def begun(path: Path, text: str = OF_CHAIN, spec: str = CHAIN, **parameters: Any) -> tuple[Model, Inherited]:
    """A model of a spec that starts from a file or folder by a map."""
    model = modgraph.loads(spec, **parameters).build(seed=0)
    return model, inherit_into(model, path, text)


def inherit_into(model: Model, path: Path, text: str = OF_CHAIN) -> Inherited:
    place = (path if path.is_dir() else path.parent) / "map.yaml"
    place.write_text(text)
    return inherit_file(model.graph, model.state_dict(), str(path), read_map(str(place), model.graph))


# ---------------------------------------------------------------- shards


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_shards_give_what_one_file_does_in_any_precision(tmp_path: Path, dtype: torch.dtype) -> None:
    tensors = chain(dtype=dtype)
    index = save_shards(tensors, tmp_path, 3)
    for path in (index, tmp_path):
        model, inherited = begun(path)
        for at, name in enumerate(tensors):
            found = model.state_dict()[f"part.{at}.x.linear.weight"]
            assert found.dtype == torch.float32
            assert found.equal(tensors[name].float())
        assert inherited.fresh == inherited.left == ()
    (tmp_path / "whole").mkdir()
    save_file(tensors, tmp_path / "whole/model.safetensors")
    assert begun(tmp_path / "whole")[0].state_dict()["part.1.x.linear.weight"].equal(tensors["a.1"].float())


def test_one_tensor_is_in_memory_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, alive = Tensors.__getitem__, list[weakref.ref[Any]]()

    def note(self: Tensors, name: str) -> Tensor:
        gc.collect()
        assert not any(each() for each in alive), "the tensor before is still there"
        found = read(self, name)
        alive.append(weakref.ref(found))
        return found

    monkeypatch.setattr(Tensors, "__getitem__", note)
    begun(save_shards(chain(), tmp_path, 2))
    assert len(alive) == 4


LARGE = """
import re, sys, modgraph
from pathlib import Path
from modgraph.training.start.inherit import inherit_file
from modgraph.training.start.weight_map import read_map

def memory(kind):
    return 1024 * int(re.search(kind + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

spec, folder = sys.argv[1:]
warm = modgraph.load(spec, layers=1, width=8).build(seed=0)
before = memory("VmRSS")
model = modgraph.load(spec, layers=6, width=3072).build(seed=0)
Path("/proc/self/clear_refs").write_text("5")
inherit_file(model.graph, model.state_dict(), folder, read_map(folder + "/map.yaml", model.graph))
print(memory("VmHWM") - before)
"""


@pytest.mark.slow
def test_memory_stays_below_the_model_and_one_tensor(tmp_path: Path) -> None:
    """Of 226 MB of weights in six shards; the peak of a process is measured from before it builds the model."""
    width, slack = 3072, 12e6
    for at in range(6):
        save_file({f"a.{at}": torch.full((width, width), at / 8)}, tmp_path / f"{at}.safetensors")
    index = {"weight_map": {f"a.{at}": f"{at}.safetensors" for at in range(6)}}
    (tmp_path / INDEX).write_text(json.dumps(index))
    (tmp_path / "map.yaml").write_text(OF_CHAIN)
    (tmp_path / "chain.mod").write_text(CHAIN)
    command = [sys.executable, "-c", LARGE, str(tmp_path / "chain.mod"), str(tmp_path)]
    peak = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert peak < 7 * 4 * width**2 + slack, f"{peak:,} bytes"


def change_index(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    record = json.loads((folder / INDEX).read_text())
    change(record["weight_map"])
    (folder / INDEX).write_text(json.dumps(record))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-8])


FIRST = "model-00001-of-00002.safetensors"
BAD_SHARDS: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "missing": (lambda at: (at / FIRST).unlink(), "MG537", f"{FIRST} of 2 missing"),
    "outside": (lambda at: change_index(at, lambda of: of.update({"a.1": "../x"})), "MG537", 'it names "../x"'),
    "absolute": (lambda at: change_index(at, lambda of: of.update({"a.1": "/x"})), "MG537", 'it names "/x"'),
    "the folder": (lambda at: change_index(at, lambda of: of.update({"a.1": ".."})), "MG537", 'it names ".."'),
    "in no shard": (lambda at: change_index(at, lambda of: of.update({"a.9": FIRST})), "MG537", f"no a.9 in {FIRST}"),
    "in another": (lambda at: change_index(at, lambda of: of.update({"a.3": FIRST})), "MG537", f"no a.3 in {FIRST}"),
    "cut": (lambda at: cut(at / FIRST), "MG534", FIRST),
    "a text": (lambda at: (at / FIRST).write_text("<html>not found</html>"), "MG534", FIRST),
    "no number": (lambda at: change_index(at, lambda of: of.update({"a.1": 1})), "MG534", "no index of shards"),
    "empty": (lambda at: change_index(at, dict.clear), "MG534", "no index of shards"),
    "no map": (lambda at: (at / INDEX).write_text("{}"), "MG534", "no index of shards"),
    "no JSON": (lambda at: (at / INDEX).write_text('{"weight_map": {'), "MG534", "no index of shards"),
    "no index": (lambda at: (at / INDEX).unlink(), "MG534", f"a folder without {INDEX}"),
    "unindexed": (lambda at: change_index(at, lambda of: of.pop("a.1")), "MG516", "it lacks a.1"),
    "renamed": (lambda at: save_shards({"b": torch.ones(2), **chain()}, at), "MG516", "no rule takes b"),
    **{
        name: (lambda at, of=dtype: save_shards(chain(dtype=of), at), "MG516", "a.0 holds")  # type: ignore[misc]
        for name, dtype in BITS.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD_SHARDS)
def test_bad_shards_are_reported_and_nothing_is_loaded(tmp_path: Path, kind: str) -> None:
    spoil, code, words = BAD_SHARDS[kind]
    save_shards(chain(), tmp_path, 2)
    spoil(tmp_path)
    model = modgraph.loads(CHAIN).build(seed=0)
    before = {name: each.clone() for name, each in model.state_dict().items()}
    with pytest.raises(ModgraphError) as caught:
        inherit_into(model, tmp_path)
    (reported,) = caught.value.diagnostics
    assert reported.code == code
    assert words in reported.text()
    assert reported.advice()
    assert all(each.equal(before[name]) for name, each in model.state_dict().items()), "half loaded"


def test_every_bad_shard_is_reported_at_once(tmp_path: Path) -> None:
    save_shards(chain(), tmp_path)
    for at in (1, 3):
        cut(tmp_path / f"model-0000{at}-of-00004.safetensors")
    change_index(tmp_path, lambda of: of.update({"a.7": "model-00002-of-00004.safetensors"}))
    with pytest.raises(ModgraphError) as caught:
        open_tensors(str(tmp_path))
    assert [each.code for each in caught.value.diagnostics] == ["MG534", "MG534", "MG537"]


# ---------------------------------------------------------------- fused and stacked tensors

GATED = """block gated(hidden) {
  input x: float[tokens, dim]
  y = (x -> linear(hidden, name="gate") -> silu) * (x -> linear(hidden, name="up")) -> linear(dim, name="down")
  output y
}
model mixture() {
  input x: float[time, 6]
  pool expert[3] = gated(5)
  gates = x -> linear(expert, bias=false, name="router") -> softmax
  output y = x -> expert by gates
}"""
FUSED = """weights:
  router.weight: router.weight
  experts.gate_up_proj:
    {to: [expert.#.gated.gate.weight, expert.#.gated.up.weight], axes: "# in (out half) -> out in"}
  experts.gate_up_proj_bias: {to: [expert.#.gated.gate.bias, expert.#.gated.up.bias], axes: "# (out half) -> out"}
  experts.down_proj: {to: expert.#.gated.down.weight, axes: "# in out -> out in"}
  experts.down_proj_bias: {to: expert.#.gated.down.bias, axes: "# out -> out"}
"""


def fused() -> dict[str, Tensor]:
    """As gpt-oss stores its experts: stacked, transposed, gate and up interleaved."""
    generator = torch.Generator().manual_seed(5)
    shapes = {
        "gate_up_proj": (3, 6, 10),
        "gate_up_proj_bias": (3, 10),
        "down_proj": (3, 5, 6),
        "down_proj_bias": (3, 6),
    }
    found = {f"experts.{name}": torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    return {**found, "router.weight": torch.randn(3, 6, generator=generator)}


@pytest.mark.parametrize("interleaved", [True, False])
def test_stacked_experts_with_fused_halves_compute_what_their_tensors_say(tmp_path: Path, interleaved: bool) -> None:
    w = fused()
    save_shards(w, tmp_path, 2)
    text = FUSED if interleaved else FUSED.replace("(out half)", "(half out)")
    model, inherited = begun(tmp_path, text, GATED)
    assert inherited.fresh == inherited.left == inherited.copies == ()
    x = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(1))
    both = torch.einsum("btd,edh->bteh", x, w["experts.gate_up_proj"]) + w["experts.gate_up_proj_bias"]
    gate, up = (both[..., ::2], both[..., 1::2]) if interleaved else both.chunk(2, -1)
    each = torch.einsum("bteh,ehd->bted", torch.nn.functional.silu(gate) * up, w["experts.down_proj"])
    shares = (x @ w["router.weight"].T).softmax(-1)
    expected = (shares[..., None] * (each + w["experts.down_proj_bias"])).sum(-2)
    torch.testing.assert_close(model.eval()(x), expected, atol=1e-5, rtol=1e-5)


UNEQUAL = """model m() {
  input x: float[6]
  q = x -> linear(8)
  k = x -> linear(2)
  v = x -> linear(2)
  output y = (q, k, v) -> concat
}"""


def test_parts_one_after_the_other_may_differ_in_size(tmp_path: Path) -> None:
    tensors = {"qkv.weight": torch.randn(12, 6), "qkv.bias": torch.randn(12)}
    save_file(tensors, tmp_path / "model.safetensors")
    to = {part: "[" + ", ".join(f"{name}.linear.{part}" for name in "qkv") + "]" for part in ("weight", "bias")}
    text = f"weights:\n  qkv.weight: {{to: {to['weight']}, axes: '(part out) in -> out in'}}\n"
    text += f"  qkv.bias: {{to: {to['bias']}, axes: '(part out) -> out'}}\n"
    model, inherited = begun(tmp_path, text, UNEQUAL)
    assert inherited.copies == ()
    x = torch.randn(3, 6)
    torch.testing.assert_close(model(x), x @ tensors["qkv.weight"].T + tensors["qkv.bias"])
    with pytest.raises(ModgraphError, match=r"are interleaved, but have 8, 2, 2 places"):
        begun(tmp_path, text.replace("(part out) in", "(out part) in"), UNEQUAL)


@some_examples(12)
@given(data=st.data())
def test_a_map_undoes_the_fusion_that_it_describes(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Weights fused, stacked and permuted in any way that a map says are those it gives."""
    source = modgraph.loads(GATED).build(seed=data.draw(st.integers(0, 99))).state_dict()
    of = {
        f"{name}.{part}": [f"expert.#.gated.{each}.{part}" for each in name.split("_")]
        for name in ("gate_up", "down")
        for part in ("weight", "bias")
    }
    tensors, rules = {"router": source["router.weight"]}, ["router: router.weight"]
    for name, targets in of.items():
        experts = np.stack([[source[to.replace("#", str(at))].numpy() for to in targets] for at in range(3)])
        here = ["#", "half", *"oi"[: experts.ndim - 2]]
        keeps = data.draw(st.permutations([axis for axis in here if axis != "half"]))
        place, last = keeps.index("o"), data.draw(st.booleans())
        there = [*keeps[: place + last], "half", *keeps[place + last :]]
        moved = experts.transpose([here.index(axis) for axis in there])
        shape = [experts.shape[here.index(axis)] * (len(targets) if axis == "o" else 1) for axis in keeps]
        tensors[name] = torch.tensor(np.ascontiguousarray(moved).reshape(shape))
        both = ("(o half)" if last else "(half o)") if len(targets) > 1 else "o"
        left = " ".join(both if axis == "o" else axis for axis in keeps)
        rules.append(f'{name}: {{to: [{", ".join(targets)}], axes: "{left} -> {" ".join(here[2:])}"}}')
    folder = tmp_path_factory.mktemp("fused")
    save_file(tensors, folder / "model.safetensors")
    model, inherited = begun(folder, "weights: {" + ", ".join(rules) + "}", GATED)
    found = model.state_dict()
    assert all(found[name].equal(source[name]) for name in source)
    assert inherited.fresh == inherited.left == inherited.copies == ()


BOTH = "[expert.#.gated.gate.weight, expert.#.gated.up.weight]"
MISTAKES = {
    f"{{to: {BOTH}, axes: '# in out -> out in'}}": ("MG516", "experts.gate_up_proj[0] is of [3, 6, 10] there"),
    f"{{to: {BOTH}, axes: '# in (half out -> out in'}}": ("MG535", "parentheses hold two axes"),
    f"{{to: {BOTH}, axes: '# in half out) -> out in'}}": ("MG535", "parentheses hold two axes"),
    f"{{to: {BOTH}, axes: '# in (half out) -> (half out) in'}}": ("MG535", "parentheses hold two axes"),
    f"{{to: {BOTH}, axes: '# in (out) -> out in'}}": ("MG535", "of which the weight has one"),
    f"{{to: {BOTH}, axes: '# in (a b out) -> out in'}}": ("MG535", "of which the weight has one"),
    f"{{to: {BOTH}, axes: '# in (a b) -> out in'}}": ("MG535", "of which the weight has one"),
    f"{{to: {BOTH}, axes: '# (in out) -> out in'}}": ("MG516", "experts.gate_up_proj[0] is of [3, 6, 10] there"),
    f"{{to: {BOTH}, axes: 'in (# out) -> out in'}}": ("MG535", "of which the weight has one"),
    f"{{to: {BOTH}, axes: '# (a in) (half out) -> out in'}}": ("MG535", "once may parentheses"),
    f"{{to: {BOTH}, axes: '# out (out half) -> out in'}}": ("MG535", '"out" names two axes'),
    f"{{to: {BOTH}, axes: '# in (half out) -> out'}}": ("MG535", "name the same axes"),
    f"{{to: {BOTH}, axes: '# (half out) -> out'}}": ("MG536", "name 2 axes right of"),
    "{to: expert.#.gated.gate.weight, axes: '# in (half out) -> out in'}": ("MG530", "a weight for each"),
    "{to: [expert.#.gated.gate.weight, router.weight], axes: 'in (half out) -> out in'}": ("MG530", "as many #"),
    "{to: [expert.#.gated.gate.weight, expert.#.gated.upp.weight], axes: '# in (half out) -> out in'}": (
        "MG531",
        'did you mean "expert.0.gated.up.weight"',
    ),
    "{to: [expert.#.gated.gate.weight, expert.#.gated.up.bias], axes: '# in (half out) -> out in'}": (
        "MG536",
        'weight "expert.0.gated.up.bias" has 1 axes',
    ),
    "{to: [router.weight, router.weight], axes: 'in (half out) -> out in'}": ("MG532", '"router.weight"'),
}
REST = "random: [router.*, expert.#.gated.*.*]\nunused: [router.weight, experts.*]\n"


@pytest.mark.parametrize("rule", MISTAKES)
def test_a_mistake_in_a_fused_rule_has_its_code_its_place_and_a_way_out(tmp_path: Path, rule: str) -> None:
    code, words = MISTAKES[rule]
    save_shards(fused(), tmp_path)
    text = f"weights:\n  experts.gate_up_proj: {rule}\n"
    text += (
        REST.replace("expert.#.gated.*.*", "expert.#.gated.down.*, expert.#.gated.*.bias") if code == "MG516" else REST
    )
    with pytest.raises(ModgraphError) as caught:
        begun(tmp_path, text, GATED)
    reported = {each.code: each for each in caught.value.diagnostics}
    assert code in reported, reported
    assert words in reported[code].text() + reported[code].advice()
    assert code == "MG516" or reported[code].span is not None


def test_an_optional_rule_may_have_no_weight_but_needs_its_tensor_where_it_has_one(tmp_path: Path) -> None:
    save_file(chain(), tmp_path / "model.safetensors")
    more = "weights: {a.*: part.*.x.linear.weight, b.*: {to: part.*.x.linear.%s, optional: true}}"
    _, inherited = begun(tmp_path, more % "bias")
    assert inherited.fresh == inherited.left == ()
    with pytest.raises(ModgraphError, match=r"it lacks b\.0"):
        begun(tmp_path, more % "bias", CHAIN.replace(", bias=false", ""))
    with pytest.raises(ModgraphError, match=r"must be true or false"):
        begun(tmp_path, (more % "bias").replace("true", "perhaps"))


# ---------------------------------------------------------------- parameters of config.json

CONFIGURED = """config:
  width: hidden_size
  layers: [depth.blocks, n_layer, 3]
  bias: true
requires: {act: relu, tied: false, skip: [], window: null}
weights: {a.*: part.*.x.linear.weight}
"""


def read_with(folder: Path, record: Any, text: str = CONFIGURED) -> dict[str, Any]:
    (folder / "config.json").write_text(record if isinstance(record, str) else json.dumps(record))
    (folder / "map.yaml").write_text(text)
    return read_config(str(folder / "map.yaml"), str(folder), ["layers", "width", "bias", "scale", "act"])


def test_parameters_are_keys_of_config_json_values_or_have_their_names(tmp_path: Path) -> None:
    record = {
        "hidden_size": 16,
        "depth": {"blocks": 2},
        "n_layer": 9,
        "scale": 2.0,
        "tied": False,
        "vocab": 7,
        "skip": [],
    }
    assert read_with(tmp_path, record) == {"layers": 2, "width": 16, "bias": True, "scale": 2.0}
    assert read_with(tmp_path, {"hidden_size": 16, "depth": None, "n_layer": 9})["layers"] == 9
    assert read_with(tmp_path, {"hidden_size": 16, "act": None, "window": None}) == {
        "layers": 3,
        "width": 16,
        "bias": True,
    }
    assert read_with(tmp_path, {"width": 3}, OF_CHAIN) == {}
    assert read_with(tmp_path, {"width": 3}, "config: {}\n" + OF_CHAIN) == {"width": 3}
    for kind in ("default", "yarn", ["default", "yarn"], None):
        required = "config: {}\nrequires: {kind: [default, yarn]}"
        assert read_with(tmp_path, {"width": 3, "kind": kind}, required) == {"width": 3}


BAD_CONFIGS: dict[str, tuple[Any, str, str, str]] = {
    "absent": ({"n_layer": 2}, CONFIGURED, "MG539", "no value at hidden_size for the parameter width"),
    "null": ({"hidden_size": None}, CONFIGURED, "MG539", "no value at hidden_size"),
    "a mapping": ({"hidden_size": {"a": 1}}, CONFIGURED, "MG539", "parameter width"),
    "differs": ({"hidden_size": 8, "act": "gelu"}, CONFIGURED, "MG545", 'says act: "gelu", but the map needs "relu"'),
    "tied": ({"hidden_size": 8, "tied": True}, CONFIGURED, "MG545", "says tied: true, but the map needs false"),
    "a window": ({"hidden_size": 8, "window": 9}, CONFIGURED, "MG545", "says window: 9, but the map needs null"),
    "none of some": (
        {"kind": "linear"},
        "config: {}\nrequires: {kind: [default, yarn]}",
        "MG545",
        'says kind: "linear", but the map needs ["default", "yarn"]',
    ),
    "no mapping": ([1], CONFIGURED, "MG538", "no mapping in JSON"),
    "no JSON": ("{", CONFIGURED, "MG538", "no mapping in JSON"),
    "unknown": ({}, "config: {widht: a}", "MG503", 'unknown key "widht" in config'),
    "a list": ({}, "config: [width]", "MG504", "config must be a mapping"),
    "nested": ({}, "config: {width: {a: b}}", "MG504", "config.width must be a plain value"),
}


@pytest.mark.parametrize("kind", BAD_CONFIGS)
def test_a_config_that_does_not_fit_is_reported(tmp_path: Path, kind: str) -> None:
    record, text, code, words = BAD_CONFIGS[kind]
    with pytest.raises(ModgraphError) as caught:
        read_with(tmp_path, record, text)
    (reported,) = caught.value.diagnostics
    assert reported.code == code
    assert words in reported.text()
    assert reported.advice()
    assert (reported.span is None) == (code == "MG538")


def test_a_recipe_and_commands_take_the_parameters_of_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "chain.mod"
    spec.write_text(CHAIN.replace("output x", "output x\n  target y: float[width]\n  loss mse(x, y)"))
    (tmp_path / "map.yaml").write_text("config: {layers: n_layer}\n" + OF_CHAIN)
    (tmp_path / "config.json").write_text('{"n_layer": 3, "width": 16}')
    start = {"weights": str(tmp_path), "map": str(tmp_path / "map.yaml")}
    recipe, program = read_with_spec({"start": start, "data": {"name": "npz", "train": "x", "test": "x"}}, spec, {})
    assert program.ir.parameters == recipe.model == {"layers": 3, "width": 16}
    of_recipe = {"model": {"width": 4}, "start": start, "data": {"name": "npz", "train": "x", "test": "x"}}
    assert read_with_spec(of_recipe, spec, {"model.layers": 1})[1].ir.parameters == {"layers": 1, "width": 4}
    published = f"@{tmp_path}/map.yaml={tmp_path}"
    for more, count in (([], 3 * 256), (["-s", "layers=1"], 256)):
        assert main(["cost", str(spec), *more, "-s", published, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["parameters"] == count
    assert main(["show", str(spec), "-s", f"@{tmp_path}/map.yaml={tmp_path}/none"]) == 1
    assert "MG538" in capsys.readouterr().err
    for wrong in ("@", "@map.yaml", "@=x", f"@{tmp_path}/map.yaml="):
        assert main(["show", str(spec), "-s", wrong]) == 1
        assert "MG110" in capsys.readouterr().err
