"""Added modules: a trained run grows, every old weight stays bit for bit, and only what is new learns."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import modgraph
from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.ir import from_json, grow, to_json, weights_of
from modgraph.ir.text.parse import parse_text
from modgraph.training.run import finish, resume_run, start_run
from modgraph.training.stored_run import load_run
from tests.small_runs import begin, dotted

SMN = Path("specs/smn.mod")
PARITY = Path("specs/smn_parity.mod")
SMALL = {"data__train": 320, "data__in_distribution": 64, "data__per_test_pair": 4, "train__epochs": 1}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("smn") / "run"
    begin(SMN, path, **SMALL)
    return path


@pytest.mark.some(1)
@pytest.mark.parametrize("tune", [False, True])
@pytest.mark.parametrize("added", [0, 2])
def test_old_weights_stay_and_new_ones_learn(trained: Path, tmp_path: Path, added: int, tune: bool) -> None:
    options = {"start__run": str(trained), "added": added, "tune_router": tune, "data__labelled": 15}
    begin(PARITY, tmp_path / "run", **{**SMALL, "train__epochs": 8}, **options)
    old, new = (load_run(path).checkpoint().weights for path in (trained, tmp_path / "run"))
    start = modgraph.load(PARITY, added=added, tune_router=tune).build(seed=0).state_dict()
    learnt = {name for name in new if name not in old or not old[name].equal(new[name])}
    codes = {f"specialist.{j}.modulated_linear.code" for j in range(2, 2 + added)}
    assert learnt == {"parity.linear.weight", "parity.linear.bias"} | codes | ({"agree.weight"} if tune else set())
    for name in codes:
        assert not new[name].equal(start[name])


def test_a_spec_that_grows_is_the_edit_of_the_one_that_does_not() -> None:
    small, large = (modgraph.load(PARITY, added=added).ir for added in (0, 3))
    assert grow(small, "specialist", 3) == large
    plain, four = (modgraph.load(SMN, modules=modules).ir for modules in (2, 4))
    edited = grow(plain, "specialist", 2)
    assert {weight.name for weight in weights_of(edited)} == {weight.name for weight in weights_of(four)}
    assert [node.types for node in edited] == [node.types for node in four]
    differing = [node.name for node in edited if node != four[node.name]]
    assert differing == ["specialist"]  # it remembers that two of its modules were added


def test_growth_is_part_of_text_and_json() -> None:
    graph = modgraph.load(PARITY, added=3).ir
    assert parse_text(str(graph)) == graph
    assert from_json(json.loads(json.dumps(to_json(graph)))) == graph
    assert graph.hash() != modgraph.load(PARITY, modules=5, added=0).ir.hash()


def test_the_report_says_what_came_from_where(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["train", str(PARITY), "--out", str(tmp_path / "run"), "-s", f"start.run={trained}"]
    for name, value in SMALL.items():
        arguments += ["-s", f"{name.replace('__', '.')}={value}"]
    assert main(arguments) == 0
    errors = capsys.readouterr().err
    assert "10 tensors come from" in errors
    assert "new: specialist.2.modulated_linear.code, specialist.3.modulated_linear.code, parity.linear" in errors
    assert "not used: logits.linear.bias, logits.linear.weight" in errors


def test_a_run_that_was_killed_before_its_first_epoch_needs_the_old_run_no_more(trained: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(trained, old)
    options = dotted({**SMALL, "start__run": str(old), "data__labelled": 15})
    with start_run(str(PARITY), None, options, str(tmp_path / "run")):
        pass
    shutil.rmtree(old)
    with resume_run(str(tmp_path / "run")) as engine:
        finish(engine)
    assert (
        load_run(tmp_path / "run")
        .checkpoint()
        .weights["agree.weight"]
        .equal(load_run(trained).checkpoint().weights["agree.weight"])
    )


MISFITS = {
    "width": ("modulated_linear(384)", "modulated_linear(32)", "is [32, 64] here and [384, 64] there"),
    "frozen": ("tokenizer glimpses", "tokenizer patches", "frozen weights would stay random"),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_weights_that_do_not_fit_are_named(trained: Path, tmp_path: Path, misfit: str) -> None:
    old, new, words = MISFITS[misfit]
    spec = tmp_path / "other.mod"
    text = PARITY.read_text().replace(old, new)
    spec.write_text(text.replace("-> glimpses", "-> patches") if misfit == "frozen" else text)
    spec.with_suffix(".yaml").write_text(PARITY.with_suffix(".yaml").read_text())
    with pytest.raises(ModgraphError) as caught:
        begin(spec, tmp_path / "run", **SMALL, start__run=str(trained))
    assert caught.value.diagnostics[0].code == "MG516"
    assert words in str(caught.value)
    assert not (tmp_path / "run/run.json").exists()


def test_a_run_without_checkpoint_is_no_start(trained: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(trained, old, ignore=shutil.ignore_patterns("checkpoints"))
    with pytest.raises(ModgraphError, match="no epoch is finished"):
        begin(PARITY, tmp_path / "run", **SMALL, start__run=str(old))


def model(body: str) -> str:
    return f"model m(n=1) {{ input x: float[4] {body} output y }}"


MISTAKES = {
    model("pool p[2] = linear(3) y = x -> p -> mean grow p[1]"): ("MG228", "before its first use"),
    model("pool p = [linear(3), relu -> linear(3)] grow p[1] y = x -> p -> mean"): ("MG228", "differ"),
    model("pool p[2] = linear(3) grow p[-1] y = x -> p -> mean"): ("MG228", "the number must be whole"),
    model("pool p[2] = linear(3) grow p[0.5] y = x -> p -> mean"): ("MG228", "the number must be whole"),
    model("pool p[2] = linear(3) grow p[99999999] y = x -> p -> mean"): ("MG228", "the number must be whole"),
    model("pool p[2] = linear(3) grow q[1] y = x -> p -> mean"): ("MG201", "the pools here: p"),
    model("module p = linear(3) grow p[1] y = x -> p"): ("MG218", "expected a pool"),
    model("pool p[2] = linear(3) grow p[x] y = x -> p -> mean"): ("MG", "number of modules"),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_growth_that_cannot_be_is_reported_at_its_place(text: str) -> None:
    code, words = MISTAKES[text]
    with pytest.raises(ModgraphError) as caught:
        modgraph.loads(text)
    assert caught.value.diagnostics[0].code.startswith(code)
    assert words in str(caught.value)


def test_a_frozen_growth_learns_too_unless_its_pool_is_whole() -> None:
    text = model("frozen { pool p[2] = linear(3) } grow p[n] y = x -> p -> mean -> linear(2)")
    frozen = {weight.name for weight in weights_of(modgraph.loads(text, n=2).ir) if weight.frozen}
    assert frozen == {f"p.{j}.linear.{part}" for j in range(2) for part in ("weight", "bias")}


def test_what_a_branch_declares_is_what_its_name_stands_for() -> None:
    text = """
    model m(soft=true) {
      input x: float[5, 4]
      pool p[3] = linear(4)
      if soft { router r = agreement(2) } else { frozen { router r = agreement(1) } }
      y = x -> p by r -> mean
      output y
      loss importance(r, over="example")
    }
    """
    for soft in (True, False):
        frozen = [weight.name for weight in weights_of(modgraph.loads(text, soft=soft).ir) if weight.frozen]
        assert frozen == ([] if soft else ["r.weight"])
