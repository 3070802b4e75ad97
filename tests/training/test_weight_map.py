"""Starting from a file of weights: a ViT under timm's names becomes the dense model, and experts that are copies."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
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
from modgraph.diagnostics import ModgraphError
from modgraph.ir import weights_of
from modgraph.training.run import finish, resume_run, start_run
from modgraph.training.start.inherit import Inherited, inherit_file
from modgraph.training.start.tensor_files import open_tensors
from modgraph.training.start.weight_map import match_pattern, read_map
from modgraph.training.stored_run import load_run
from tests.ordinary_run import some_examples
from tests.training.timm_vit import PARAMETERS, timm_forward, timm_tensors
from tests.work import count_calls

MAP = "specs/gmoe_timm.yaml"


def model_of(**parameters: Any) -> Model:
    return modgraph.load("specs/gmoe.mod", **{**PARAMETERS, "sparse": [1], **parameters}).build(seed=0)


def begun(
    path: Path, tensors: dict[str, Tensor], text: str | None = None, **parameters: Any
) -> tuple[Model, Inherited]:
    """A model that starts from these tensors, in a file, and what was told."""
    save_file(tensors, path / "vit.safetensors")
    model = model_of(**parameters)
    (path / "map.yaml").write_text(Path(MAP).read_text() if text is None else text)
    return model, inherit_file(
        model.graph, model.state_dict(), str(path / "vit.safetensors"), read_map(str(path / "map.yaml"), model.graph)
    )


# ---------------------------------------------------------------- what starts from what


def test_the_dense_model_computes_what_the_other_network_did(tmp_path: Path) -> None:
    tensors = timm_tensors()
    model, inherited = begun(tmp_path, tensors, sparse=[])
    image = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(model.eval()(image), timm_forward(tensors, image), atol=1e-5, rtol=1e-5)
    assert inherited.fresh == inherited.left == inherited.copies == ()


def test_every_expert_is_a_copy_of_its_blocks_mlp(tmp_path: Path) -> None:
    tensors = timm_tensors()
    model, inherited = begun(tmp_path, tensors, sparse=[0, 2])
    found = model.state_dict()
    for block, part in ((b, p) for b in (0, 2) for p in ("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias")):
        for expert in range(3):
            assert found[f"blocks.{block}.expert.{expert}.ffn.{part}"].equal(tensors[f"blocks.{block}.mlp.{part}"])
    assert found["blocks.1.mlp.fc1.weight"].equal(tensors["blocks.1.mlp.fc1.weight"])
    start = model_of(sparse=[0, 2]).state_dict()
    gates = {name for name in found if ".gate." in name}
    assert set(inherited.fresh) == gates
    assert all(found[name].equal(start[name]) for name in gates)
    assert len(inherited.copies) == 2 * 3 * 4
    assert set(inherited.taken) | gates == set(found)


def test_a_routed_model_with_equal_experts_and_gates_of_one_is_the_dense_one(tmp_path: Path) -> None:
    tensors = timm_tensors()
    model, _ = begun(tmp_path, tensors, k=2, sparse=[0, 1, 2])
    image = torch.randn(4, 3, 8, 8)
    torch.testing.assert_close(model.eval()(image), timm_forward(tensors, image), atol=1e-5, rtol=1e-5)


def test_a_head_of_other_classes_is_initialised_and_the_old_one_is_left(tmp_path: Path) -> None:
    model, inherited = begun(tmp_path, timm_tensors(classes=7))
    assert {"head.weight", "head.bias"} <= set(inherited.fresh)
    assert inherited.left == ("head.bias", "head.weight")
    assert model.state_dict()["head.weight"].equal(model_of().state_dict()["head.weight"])
    tensors = {name: each for name, each in timm_tensors().items() if not name.startswith("head.")}
    assert begun(tmp_path, tensors)[1].left == ()


@pytest.mark.parametrize("wrapped", [None, "model", "state_dict"])
def test_a_state_dict_of_torch_is_read_as_the_usual_scripts_save_it(tmp_path: Path, wrapped: str | None) -> None:
    tensors = timm_tensors()
    torch.save(tensors if wrapped is None else {wrapped: tensors, "epoch": 3}, tmp_path / "vit.pth")
    found = open_tensors(str(tmp_path / "vit.pth"))
    assert found.keys() == tensors.keys()
    assert all(found[name].equal(tensors[name]) for name in tensors)


def test_half_precision_is_widened(tmp_path: Path) -> None:
    tensors = {name: each.half() for name, each in timm_tensors().items()}
    found = begun(tmp_path, tensors)[0].state_dict()
    assert found["norm.weight"].dtype == torch.float32
    assert found["norm.weight"].equal(tensors["norm.weight"].float())


# ---------------------------------------------------------------- a training that starts so


def recipe(folder: Path, weights: str) -> dict[str, Any]:
    """What a training of a tiny GMoE on random images is told; its recipe is written."""
    rng = np.random.default_rng(0)
    np.savez(folder / "data.npz", image=rng.random((20, 3, 8, 8)), label=np.arange(20) % 5)
    text = f"data: {{name: npz, train: {folder}/data.npz}}\ntrain: {{epochs: 1, batch: 8, optimizer: sgd}}\n"
    (folder / "r.yaml").write_text(text + f"start: {{weights: {weights}, map: {MAP}}}\n")
    return {**PARAMETERS, "sparse": (1,)}


def test_a_run_records_where_its_weights_came_from(tmp_path: Path) -> None:
    save_file(timm_tensors(), tmp_path / "vit.safetensors")
    options = recipe(tmp_path, f"{tmp_path}/vit.safetensors")
    with start_run("specs/gmoe.mod", str(tmp_path / "r.yaml"), options, str(tmp_path / "run")):
        pass
    reported = json.loads((tmp_path / "run/start.json").read_text())
    assert reported["source"] == "vit.safetensors"
    assert reported["fresh"] == [f"blocks.1.gate.{part}" for part in ("weight", "bias", "keys", "scale")]
    assert "blocks.1.expert.2.ffn.fc2.bias" in reported["copies"]
    found = load_run(tmp_path / "run").checkpoint().weights
    assert found["norm.weight"].equal(timm_tensors()["norm.weight"])
    (tmp_path / "vit.safetensors").unlink()
    with resume_run(str(tmp_path / "run")) as engine:
        finish(engine)


def test_a_map_with_mistakes_leaves_no_folder(tmp_path: Path) -> None:
    options = recipe(tmp_path, "nowhere.pth")
    (tmp_path / "map.yaml").write_text("weights: {a: b}")
    for start, code in ((f"{tmp_path}/map.yaml", "MG531"), (MAP, "MG534")):
        with (
            pytest.raises(ModgraphError) as caught,
            start_run(
                "specs/gmoe.mod", str(tmp_path / "r.yaml"), {**options, "start.map": start}, str(tmp_path / "run")
            ),
        ):
            pass
        assert caught.value.diagnostics[0].code == code
        assert not (tmp_path / "run/run.json").exists()


# ---------------------------------------------------------------- tensors that do not fit

MISFITS: dict[str, tuple[Callable[[dict[str, Tensor]], object], str]] = {
    "missing": (lambda t: t.pop("blocks.1.norm1.bias"), "it lacks blocks.1.norm1.bias"),
    "missing for copies": (lambda t: t.pop("blocks.1.mlp.fc1.bias"), "it lacks blocks.1.mlp.fc1.bias"),
    "extra": (lambda t: t.update(dist_token=torch.zeros(1, 1, 12)), "no rule takes dist_token"),
    "deeper": (lambda t: t.update(timm_tensors(depth=4)), "no rule takes blocks.3.attn.proj.bias"),
    "positions": (
        lambda t: t.update(timm_tensors(size=12)),
        "patches.position.weight is [5, 12] here and pos_embed is [1, 10, 12] there",
    ),
    "transposed": (
        lambda t: t.update({"blocks.1.mlp.fc1.weight": torch.zeros(12, 48)}),
        "blocks.1.expert.0.ffn.fc1.weight is [48, 12] here and blocks.1.mlp.fc1.weight is [12, 48] there",
    ),
}  # fmt: skip


@pytest.mark.parametrize("misfit", MISFITS)
def test_tensors_that_do_not_fit_are_named(tmp_path: Path, misfit: str) -> None:
    change, words = MISFITS[misfit]
    tensors = timm_tensors()
    change(tensors)
    refuses(begun, tmp_path, tensors, words)


def refuses(start: Callable[[Path, Any], Any], folder: Path, tensors: Any, words: str) -> None:
    """A training does not start from some tensors, and says so in one message."""
    with pytest.raises(ModgraphError) as caught:
        start(folder, tensors)
    (reported,) = caught.value.diagnostics
    assert reported.code == "MG516"
    assert words in reported.text()


def test_all_that_is_amiss_with_a_file_is_reported_at_once(tmp_path: Path) -> None:
    tensors = timm_tensors(size=12)
    tensors["norms.weight"] = tensors.pop("norm.weight")
    with pytest.raises(ModgraphError) as caught:
        begun(tmp_path, tensors)
    assert len(caught.value.diagnostics) == 3


def test_a_frozen_weight_must_come_from_the_file(tmp_path: Path) -> None:
    spec = Path("specs/gmoe.mod").read_text()
    frozen = re.sub(r"router gate = cosine\(.*?\)", lambda gate: f"frozen {{ {gate[0]} }}", spec, flags=re.DOTALL)
    program = modgraph.loads(frozen, **{**PARAMETERS, "sparse": [1]})
    save_file(timm_tensors(), tmp_path / "vit.safetensors")
    with pytest.raises(ModgraphError, match="frozen weights would stay random, without a tensor: blocks"):
        inherit_file(
            program.ir, program.build(0).state_dict(), str(tmp_path / "vit.safetensors"), read_map(MAP, program.ir)
        )


# ---------------------------------------------------------------- axes that lie otherwise

DOCUMENT = Path("docs/guides/published-weights.md").read_text()
BLOCKS = re.findall(r"```\w+\n(.*?)```", DOCUMENT, re.S)
MIXTURE = next(block for block in BLOCKS if "model mixture" in block)
STACKED = next(block for block in BLOCKS if "experts.w1" in block)


def mixture() -> Model:
    return modgraph.loads(MIXTURE).build(seed=0)


def stacked() -> dict[str, Tensor]:
    """What a file holds that keeps experts in one array, each matrix with its inputs first."""
    generator = torch.Generator().manual_seed(5)
    shapes = {"w1": (3, 6, 8), "b1": (3, 8), "w2": (3, 8, 6), "b2": (3, 6)}
    tensors = {f"experts.{name}": torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    counter = torch.tensor(7)
    return {**tensors, "router": torch.randn(6, 3, generator=generator), "norm.num_batches_tracked": counter}


def started_from(folder: Path, tensors: dict[str, Tensor], text: str = STACKED) -> tuple[Model, Inherited]:
    save_file(tensors, folder / "moe.safetensors")
    (folder / "map.yaml").write_text(text)
    model = mixture()
    return model, inherit_file(
        model.graph,
        model.state_dict(),
        str(folder / "moe.safetensors"),
        read_map(str(folder / "map.yaml"), model.graph),
    )


def test_the_documents_map_takes_experts_apart_and_transposes_their_matrices(tmp_path: Path) -> None:
    tensors = stacked()
    model, inherited = started_from(tmp_path, tensors)
    found = model.state_dict()
    for expert in range(3):
        assert found[f"expert.{expert}.linear.weight"].equal(tensors["experts.w1"][expert].T)
        assert found[f"expert.{expert}.linear.bias"].equal(tensors["experts.b1"][expert])
        assert found[f"expert.{expert}.linear2.weight"].equal(tensors["experts.w2"][expert].T)
    assert found["gate.weight"].equal(tensors["router"].T)
    assert inherited.fresh == inherited.copies == ()
    assert inherited.left == ("norm.num_batches_tracked",)
    x = torch.randn(2, 4, 6)
    (y, gates) = model.eval()(x), (x @ tensors["router"]).softmax(-1)
    hidden = torch.relu(torch.einsum("bnd,edh->bneh", x, tensors["experts.w1"]) + tensors["experts.b1"])
    each = torch.einsum("bneh,ehd->bned", hidden, tensors["experts.w2"]) + tensors["experts.b2"]
    best = gates.argmax(-1, keepdim=True)
    expected = gates.gather(-1, best) * each.gather(-2, best.unsqueeze(-1).expand(-1, -1, -1, 6)).squeeze(-2)
    torch.testing.assert_close(y, expected, atol=1e-5, rtol=1e-5)


STACKS: dict[str, tuple[Callable[[dict[str, Tensor]], object], str]] = {
    "too many": (lambda t: t.update({"experts.b2": torch.zeros(5, 6)}), "no rule takes experts.b2[3], experts.b2[4]"),
    "too few": (
        lambda t: t.update({"experts.b2": torch.zeros(2, 6)}),
        'expert.2.linear2.bias is [6] here and experts.b2[2] is of [2, 6] there, taken as "# out -> out"',
    ),
    "other rank": (
        lambda t: t.update({"experts.b2": torch.zeros(6)}),
        "expert.0.linear2.bias is [6] here and experts.b2[0] is of [6] there",
    ),
    "not turned": (
        lambda t: t.update(router=torch.zeros(3, 6)),
        'gate.weight is [3, 6] here and router is [3, 6] there, taken as "in expert -> expert in"',
    ),
    "whole numbers": (
        lambda t: t.update(router=torch.zeros(6, 3, dtype=torch.int32)),
        "router holds I32",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", STACKS)
def test_stacks_that_do_not_fit_are_named(tmp_path: Path, kind: str) -> None:
    change, words = STACKS[kind]
    tensors = stacked()
    change(tensors)
    refuses(started_from, tmp_path, tensors, words)


def test_slices_that_nothing_takes_may_be_unused_and_those_that_lack_random(tmp_path: Path) -> None:
    tensors = stacked()
    tensors["experts.b2"] = torch.ones(5, 6)
    unused = STACKED.replace("unused: [", "unused: [experts.b2, ")
    assert started_from(tmp_path, tensors, unused)[1].left[1:] == ("experts.b2[3]", "experts.b2[4]")
    tensors["experts.b2"] = torch.ones(2, 6)
    model, inherited = started_from(tmp_path, tensors, STACKED + "\nrandom: [expert.#.linear2.bias]\n")
    assert inherited.fresh == ("expert.2.linear2.bias",)
    assert model.state_dict()["expert.1.linear2.bias"].equal(torch.ones(6))


@some_examples(25)
@given(data=st.data())
def test_a_map_undoes_the_arrangement_that_it_describes(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Weights laid out as the map says, in any order of axes, stacked along any of them or not, are those it gives."""
    source = modgraph.loads(MIXTURE).build(seed=data.draw(st.integers(0, 99))).state_dict()
    tensors, rules = {}, []
    for part in ("linear.weight", "linear.bias", "linear2.weight", "linear2.bias"):
        experts = np.stack([source[f"expert.{expert}.{part}"].numpy() for expert in range(3)])
        here = ["#", *"abc"[: experts.ndim - 1]]
        there = data.draw(st.permutations(here))
        tensors[part] = torch.tensor(np.ascontiguousarray(experts.transpose([here.index(axis) for axis in there])))
        rules.append(f'{part}: {{to: expert.#.{part}, axes: "{" ".join(there)} -> {" ".join(here[1:])}"}}')
    turned = data.draw(st.booleans())
    tensors["gate"] = source["gate.weight"].T.contiguous() if turned else source["gate.weight"]
    rules.append("gate: {to: gate.weight, axes: " + ("a b -> b a}" if turned else "a b -> a b}"))
    model, inherited = started_from(tmp_path_factory.mktemp("arranged"), tensors, "weights: {" + ", ".join(rules) + "}")
    found = model.state_dict()
    assert all(found[name].equal(source[name]) for name in source)
    assert inherited.fresh == inherited.left == inherited.copies == ()


# ---------------------------------------------------------------- files that are none


def lightning_like(path: Path) -> None:
    torch.save({"model": {"a": torch.zeros(2), "b": "text"}}, path)


def with_code(path: Path) -> None:
    torch.save({"a": os.system}, path)


FILES: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "missing": ("vit.pth", lambda path: None, "no such file"),
    "folder": ("vit.pth", Path.mkdir, "it is a folder"),
    "empty": ("vit.pth", lambda path: path.write_bytes(b""), ""),
    "text": ("vit.pth", lambda path: path.write_text("hello"), ""),
    "code": ("vit.pth", with_code, ""),
    "list": ("vit.pth", lambda path: torch.save([torch.zeros(2)], path), "it contains a list"),
    "one tensor": ("vit.pth", lambda path: torch.save(torch.zeros(2), path), "it contains a Tensor"),
    "words": ("vit.pth", lightning_like, '"b" in it is a str'),
    "nothing": ("vit.pth", lambda path: torch.save({}, path), "no tensors"),
    "empty safetensors": ("vit.safetensors", lambda path: path.write_bytes(b""), ""),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_without_weights_is_reported(tmp_path: Path, kind: str) -> None:
    name, write, words = FILES[kind]
    write(tmp_path / name)
    with pytest.raises(ModgraphError) as caught:
        open_tensors(str(tmp_path / name))
    (reported,) = caught.value.diagnostics
    assert reported.code == "MG534"
    assert words in reported.text()
    assert "\n" not in reported.text()


@pytest.mark.parametrize("write", [torch.save, save_file])
@pytest.mark.parametrize("name", ["vit.pth", "vit.safetensors", "vit"])
def test_a_file_is_recognised_by_its_content(
    tmp_path: Path, write: Callable[[dict[str, torch.Tensor], Path], object], name: str
) -> None:
    """As a link to it may be called anything."""
    write(timm_tensors(), tmp_path / "original")
    (tmp_path / name).symlink_to("original")
    assert open_tensors(str(tmp_path / name)).keys() == timm_tensors().keys()


@pytest.mark.parametrize("name", ["vit.pth", "vit.safetensors"])
@some_examples(60)
@given(keep=st.floats(0, 0.999), at=st.floats(0, 1), byte=st.integers(0, 255), cut=st.booleans())
def test_a_damaged_file_gives_tensors_or_one_message(
    tmp_path_factory: pytest.TempPathFactory, name: str, keep: float, at: float, byte: int, cut: bool
) -> None:
    path = tmp_path_factory.mktemp("damaged") / name
    (save_file if name.endswith("safetensors") else torch.save)(timm_tensors(), path)
    content = bytearray(path.read_bytes())
    if cut:
        content = content[: int(keep * len(content))]
    else:
        content[int(at * (len(content) - 1))] = byte
    path.write_bytes(content)
    try:
        open_tensors(str(path))
    except ModgraphError as error:
        assert [each.code for each in error.diagnostics] == ["MG534"]
    else:
        assert not cut


# ---------------------------------------------------------------- maps

HEAD = "weights: {norm.*: norm.*}\n"
REST = "random: ['*', '*.*', '*.*.*', '*.*.*.*', '*.*.*.*.*', '*.*.*.*.*.*', '*.*.*.*.*.*.*']\n"
MISTAKES = {
    "weights: {norm.*: nrom.*}\n" + REST: ("MG531", 'did you mean "norm.*"'),
    "weights: {a.*.*: [blocks.1.exprt.#.ffn.*.*]}\n" + REST: ("MG531", "blocks.1.expert.#.ffn.*.*"),
    "weights: {norm.*: norm.*, norm.bias: norm.bias}\n" + REST: ("MG532", '"norm.bias"'),
    "weights: {norm.*: [norm.*, norm.*]}\n" + REST: ("MG532", "norm.bias"),
    "weights: {norm.*: norm.weight}\n" + REST: ("MG530", "same number of *"),
    "weights: {norm.weight: norm.*}\n" + REST: ("MG530", "same number of *"),
    "weights: {nor*: nor*}\n" + REST: ("MG530", "whole part"),
    "weights: {a.#.*: norm.*}\n" + REST: ("MG530", "side of the model"),
    HEAD + "random: [head.*]\n": ("MG533", "patches.patch_embed.weight"),
    HEAD: ("MG533", "and"),
    REST: ("MG505", "weights"),
    "weights: 3\n" + REST: ("MG505", "weights"),
    "weights: {norm.*: 3}\n" + REST: ("MG504", "must be a name"),
    "weights: {norm.*: {a: b}}\n" + REST: ("MG503", "keys are: axes, optional, to"),
    "weights: {norm.*: {axes: a -> a}}\n" + REST: ("MG505", "norm.* needs to"),
    "weights: {norm.*: {to: 3}}\n" + REST: ("MG504", "must be a string"),
    "weights: {norm.*: {to: norm.*, axes: 3}}\n" + REST: ("MG504", "must be a string"),
    "weights: {norm.*: {to: norm.*, axes: a}}\n" + REST: ("MG535", "one ->"),
    "weights: {norm.*: {to: norm.*, axes: a -> a -> a}}\n" + REST: ("MG535", "one ->"),
    "weights: {norm.*: {to: norm.*, axes: a a -> a}}\n" + REST: ("MG535", '"a" names two axes'),
    "weights: {norm.*: {to: norm.*, axes: a b -> a}}\n" + REST: ("MG535", "name the same axes"),
    "weights: {norm.*: {to: norm.*, axes: a -> b}}\n" + REST: ("MG535", "name the same axes"),
    "weights: {norm.*: {to: norm.*, axes: 'a # -> # a'}}\n" + REST: ("MG535", "# must be an axis in the file"),
    "weights: {norm.*: {to: norm.*, axes: '# a -> a'}}\n" + REST: ("MG530", "has one #"),
    "weights: {norm.*: {to: norm.*, axes: a b -> b a}}\n" + REST: ("MG536", "name 1 axes right of"),
    HEAD + REST + "unsued: [a]\n": ("MG503", 'did you mean "unused"'),
    HEAD + HEAD + REST: ("MG507", "twice"),
    "- 1": ("MG502", "not a mapping"),
    "weights: [": ("MG502", ""),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_in_a_map_has_its_code_its_place_and_a_way_out(tmp_path: Path, text: str) -> None:
    code, words = MISTAKES[text]
    (tmp_path / "map.yaml").write_text(text)
    graph = modgraph.load("specs/gmoe.mod", **{**PARAMETERS, "sparse": [1]}).ir
    with pytest.raises(ModgraphError) as caught:
        read_map(str(tmp_path / "map.yaml"), graph)
    reported = {each.code: each for each in caught.value.diagnostics}
    assert code in reported
    assert words in reported[code].text() + reported[code].advice()
    assert reported[code].span is not None


def test_all_mistakes_of_a_map_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text("weights: {a: nrom.weight, b: nrom.bias, c*: norm.weight}\nx: 1\n" + REST)
    with pytest.raises(ModgraphError) as caught:
        read_map(str(tmp_path / "map.yaml"), modgraph.load("specs/gmoe.mod").ir)
    assert sorted(each.code for each in caught.value.diagnostics) == ["MG503", "MG530", "MG531", "MG531"]


@pytest.mark.parametrize("sparse", [[], [8, 10], list(range(12))])
def test_the_map_covers_the_model_of_the_paper(sparse: list[int]) -> None:
    graph = modgraph.load("specs/gmoe.mod", sparse=sparse).ir
    found = read_map(MAP, graph)
    assert found.origins.keys() | found.random == {weight.name for weight in weights_of(graph)}
    assert {origin.tensor for origin in found.origins.values()} >= {
        "cls_token",
        "pos_embed",
        "patch_embed.proj.weight",
        "blocks.11.mlp.fc2.bias",
    }


def test_a_map_is_checked_without_torch() -> None:
    code = (
        "import sys, modgraph; from modgraph.training.start.weight_map import read_map\n"
        f"read_map('{MAP}', modgraph.load('specs/gmoe.mod').ir)\n"
        "assert not {'torch', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


MANY = {
    "unknown weights": ("weights:\n" + "".join(f"  a{i}.x: blocks.{i}.norm1.weigh\n" for i in range(1_500)), "MG531"),
    "patterns": ("weights: {a.b.*.*: ['*.*.*.*'], b: c}\nunused: [a]\nrandom: [" + "a.*, " * 40_000 + "]", "MG502"),
    "names": ("weights: {a: b}\nrandom: [" + "a.b, " * 4_000 + "]", "MG531"),
}


SLOW = {"patterns": pytest.mark.slow}
MOST_CALLS = 12_000_000  # for each of them; the patterns take 6.3 million


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=SLOW.get(kind, ())) for kind in MANY])
def test_a_long_map_takes_bounded_work(tmp_path: Path, kind: str) -> None:
    text, code = MANY[kind]
    (tmp_path / "map.yaml").write_text(text)
    graph = modgraph.load("specs/gmoe.mod").ir
    with count_calls() as work, pytest.raises(ModgraphError) as caught:
        read_map(str(tmp_path / "map.yaml"), graph)
    assert work.calls < MOST_CALLS
    assert code in {each.code for each in caught.value.diagnostics}


@given(st.lists(st.text("ab1", min_size=1), min_size=1, max_size=6), st.data())
def test_a_pattern_takes_the_names_that_its_parts_allow(parts: list[str], data: st.DataObject) -> None:
    kept = data.draw(st.lists(st.booleans(), min_size=len(parts), max_size=len(parts)))
    pattern = ".".join(part if keep else "*" for part, keep in zip(parts, kept, strict=True))
    name = ".".join(parts)
    assert match_pattern(pattern, name) == tuple(part for part, keep in zip(parts, kept, strict=True) if not keep)
    assert match_pattern(pattern, name + ".x") is None
    assert match_pattern("#", parts[0]) == (() if parts[0].isdigit() else None)
