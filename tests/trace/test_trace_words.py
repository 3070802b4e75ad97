"""Traces of routes in scans: what was chosen at each step, for which words, and which modules follow each other."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from modgraph.cli import main
from modgraph.data.text import read_king_james
from modgraph.diagnostics import ModgraphError
from modgraph.metrics.metrics import measure
from modgraph.trace.places_picture import places_picture
from modgraph.trace.statistics import find_paths
from modgraph.trace.summary import LEAST, MOST, as_json, as_table, find_typical_words
from modgraph.trace.trace import Trace, list_routes_with_gates
from modgraph.trace.trace_run import record, trace_run
from modgraph.trace.views import draw
from modgraph.training.run import finish, start_run
from modgraph.training.stored_run import load_run
from tests.small_runs import reseal

LANGUAGE = """
model language(vocabulary=60, hidden=6, modules=3) {
  input  words: token[time, vocabulary]
  target next: class[time, vocabulary]
  pool   transition[modules] = linear(hidden)
  router controller = ROUTER
  scan words -> embedding(5) as x with h: float[hidden] {
    z, r = (x, h) -> concat -> linear(2 * hidden) -> sigmoid -> split(2)
    n    = (x, r * h) -> concat -> transition by controller -> tanh
    h    = (1 - z) * h + z * n
    yield h
  } as states
  logits = states -> linear(vocabulary)
  output logits
  loss cross_entropy(logits, next)
}
"""
LAYERS = """
model layers(slots=2) {
  input  image: float[1, 4, 4]
  target label: class[10]
  x = image -> flatten
  repeat layer[i] in 0..3 {
    pool   expert[3] = linear(16)
    router choose = categorical(slots)
    x = x -> expert by choose -> relu
  }
  logits = x -> linear(10)
  output logits
  loss cross_entropy(logits, label)
}
"""
ROUTE = "states.transition"


def trained(folder: Path, text: str, data: str, algorithm: str = "em") -> Path:
    """A run of two epochs."""
    (folder / "net.mod").write_text(text)
    train = f"{{algorithm: {algorithm}, epochs: 2, batch: 10, optimizer: {{name: sgd, lr: 0.5}}}}"
    (folder / "net.yaml").write_text(f"data: {data}\ntrain: {train}\n")
    with start_run(str(folder / "net.mod"), None, {}, str(folder / "run")) as engine:
        finish(engine)
    return folder / "run"


def language(folder: Path, router: str, algorithm: str) -> Path:
    """A language model on the first verses of the Bible."""
    lines = " ".join(read_king_james()[:2000]).replace("<eos> ", "\n")
    (folder / "genesis.txt").write_text(lines)
    data = f"{{name: text, train: {folder}/genesis.txt, window: 7, test_fraction: 0.3}}"
    return trained(folder, LANGUAGE.replace("ROUTER", router), data, algorithm)


FEWER = [pytest.param(each, marks=pytest.mark.slow) for each in ("categorical(1)", "cosine(1, width=4)")]


@pytest.fixture(scope="module", params=["noisy_top_k(2)", "categorical(2)", *FEWER])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    algorithm = "em" if "categorical" in request.param else "backprop"
    return language(tmp_path_factory.mktemp("language"), request.param, algorithm)


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("layers"), LAYERS, "{name: digits, limit: 200}")


@pytest.fixture(scope="module")
def traced_again(layers: Path) -> Trace:
    return traced(layers)


def traced(run: Path, **options: Any) -> Trace:
    return trace_run(load_run(run), **options)


# ---------------------------------------------------------------- steps of a scan


def test_a_scan_is_traced_step_by_step(tmp_path: Path) -> None:
    """Beside a loop in numpy over the words of an example, one state after the other."""
    path = language(tmp_path, "noisy_top_k(1)", "backprop")
    model = load_run(path).model()
    with torch.no_grad():
        model.get_parameter("controller.weight").normal_(generator=torch.Generator().manual_seed(3))
    arrays = load_run(path).splits()["test"]
    (route,) = list_routes_with_gates(model.graph)
    found = record(model, arrays, route)
    w = {name: tensor.double().numpy() for name, tensor in model.state_dict().items()}
    lengths = arrays.values["time_length"]
    assert found.gates.shape == (1, len(lengths), 7, 1, 3)
    assert lengths[-1] < 7
    for example in (0, 5, len(lengths) - 1):
        h = np.zeros(6)
        for t, word in enumerate(arrays.values["words"][example]):
            choice = found.records["selected"][0, example, t, 0]
            if t >= lengths[example]:
                assert not choice.any()
                continue
            x = w["states.embedding.weight"][word]
            z, r = np.split(1 / (1 + np.exp(-_linear(w, "states.z_r.linear", np.concatenate([x, h])))), 2)
            message = np.concatenate([x, r * h])
            scores = w["controller.weight"] @ message
            np.testing.assert_allclose(found.records["scores"][0, example, t, 0], scores, atol=1e-5)
            assert choice.tolist() == [float(j == scores.argmax()) for j in range(3)]
            n = np.tanh(_linear(w, f"transition.{scores.argmax()}.linear", message))
            h = (1 - z) * h + z * n


def _linear(weights: Any, name: str, x: Any) -> Any:
    return weights[f"{name}.weight"] @ x + weights[f"{name}.bias"]


@pytest.mark.some(2)
def test_the_summary_is_what_is_measured_on_the_split(run: Path) -> None:
    """All of its examples are traced, so use and entropy are the metrics of training and evaluation."""
    trace = traced(run, split="test")
    metrics = measure(load_run(run).model(), load_run(run).splits()["test"])
    (found,) = as_json(trace)["routes"][ROUTE]["rounds"]
    assert found["entropy"] == pytest.approx(metrics["H_a"], abs=1e-6)
    assert found["use"] == pytest.approx([metrics[f"use.{j}"] for j in range(3)], abs=1e-6)


@pytest.mark.some(2)
def test_arrays_have_an_axis_of_time(run: Path, tmp_path: Path) -> None:
    assert main(["trace", str(run), "-o", str(tmp_path / "t.npz"), "--examples", "9", "--split", "test"]) == 0
    found = np.load(tmp_path / "t.npz")
    model = load_run(run).model()
    batch = {name: torch.from_numpy(found[name]) for name in ("words", "time_length")}
    for name, value in model.compute(batch, losses=False, routing=True).routing.items():
        np.testing.assert_allclose(found[name][0], value.detach().numpy(), atol=1e-5)


# ---------------------------------------------------------------- words


def test_typical_words_are_counted_right(run: Path) -> None:
    trace = traced(run, split="test")
    vocabulary = json.loads((run / "vocabulary.json").read_text())
    values, (route,) = trace.arrays.values, trace.routes
    pairs: Counter[tuple[str, int]] = Counter()
    words: Counter[str] = Counter()
    for example, length in enumerate(values["time_length"]):
        for t in range(length):
            word = vocabulary[values["words"][example, t]]
            words[word] += 1
            for module in range(3):
                pairs[word, module] += int(route.records["selected"][0, example, t].reshape(-1, 3)[:, module].any())
    for module, found in enumerate(find_typical_words(trace)[ROUTE]):
        of_module = sum(count for (_, j), count in pairs.items() if j == module)
        lifts = {
            word: pairs[word, module] / of_module / (words[word] / words.total())
            for word in words
            if pairs[word, module] >= LEAST
        }
        assert [each["lift"] for each in found] == pytest.approx(sorted(lifts.values(), reverse=True)[:MOST], abs=1e-5)
        text = [
            " ".join(vocabulary[w] for w in row[:n])
            for row, n in zip(values["words"], values["time_length"], strict=True)
        ]
        for each in found:
            assert each["count"] == pairs[each["word"], module]
            assert each["lift"] == pytest.approx(lifts[each["word"]], abs=1e-5)
            assert any("{before} {word} {behind}".format(**each).strip() in line for line in text)


@pytest.mark.some(2)
def test_words_stand_in_the_table_and_the_summary(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(run), "--json", "--split", "test"]) == 0
    words = json.loads(capsys.readouterr().out)["routes"][ROUTE]["words"]
    assert len(words) == 3
    assert main(["trace", str(run), "--split", "test"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "typical words" in printed
    for each in [word for of_module in words for word in of_module]:
        assert f"[{each['word']}]" in printed
    for module, found in enumerate(words):
        assert found or f"transition.{module} no word often enough" in printed


def test_ids_stand_for_words_that_have_no_name(tmp_path: Path) -> None:
    words = np.random.default_rng(0).integers(0, 9, (40, 7))
    np.savez(tmp_path / "data.npz", words=words, next=words[:, ::-1])
    text = LANGUAGE.replace("ROUTER", "categorical(1)").replace("vocabulary=60", "vocabulary=9")
    trace = traced(trained(tmp_path, text, f"{{name: npz, train: {tmp_path}/data.npz}}"), split="train")
    named = [word["word"] for of_module in find_typical_words(trace)[ROUTE] for word in of_module]
    assert named
    assert set(named) <= set("012345678")


# ---------------------------------------------------------------- paths


def test_paths_are_counted_right(layers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = traced(layers)
    taken = Counter(
        tuple(
            tuple(sorted(set(route.records["selected"][0, example, 0].argmax(-1).tolist()))) for route in trace.routes
        )
        for example in range(len(trace))
    )
    (found,) = find_paths(trace)
    assert found["routes"] == [f"layer.{i}.expert" for i in range(3)]
    assert (found["decisions"], found["different"]) == (len(trace), len(taken))
    for path in found["paths"]:
        assert path["share"] == pytest.approx(taken[tuple(map(tuple, path["modules"]))] / len(trace))
    assert [path["share"] for path in found["paths"]] == sorted(
        (path["share"] for path in found["paths"]), reverse=True
    )
    assert as_json(trace)["paths"][0]["different"] == len(taken)
    assert main(["trace", str(layers)]) == 0
    assert f"paths through {', '.join(found['routes'])}: {len(taken)} different" in capsys.readouterr().out


def test_a_single_route_has_no_paths(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = traced(run)
    assert find_paths(trace) == []
    assert "paths through" not in as_table(trace, as_json(trace))
    assert main(["trace", str(run), "--view", "paths", "-o", str(tmp_path / "p.png")]) == 1
    assert "error[MG811]" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- pictures


HEADS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("view", "suffix"), [("paths", "png"), ("paths", "svg"), ("controllers", "pdf"), ("training", "svg")]
)
def test_views_are_rendered_the_same_each_time(
    layers: Path, traced_again: Trace, tmp_path: Path, view: str, suffix: str
) -> None:
    path = tmp_path / f"first.{suffix}"
    assert main(["trace", str(layers), "--view", view, "-o", str(path)]) == 0
    assert path.read_bytes().startswith(HEADS[suffix])
    assert path.read_bytes() == draw(view, traced_again, path.suffix)


@pytest.mark.some(2)
def test_entropies_over_the_training_are_those_that_were_logged(run: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    logged = [[line["H_a"], line["H_b"]] for line in lines if line["split"] == "train"]
    np.testing.assert_allclose(traced(run).entropies[ROUTE], logged)
    assert len(logged) == 2
    assert main(["trace", str(run), "--view", "controllers", "-o", str(tmp_path / "c.svg")]) == 0
    assert (tmp_path / "c.svg").read_bytes() != b""


def test_a_run_without_a_record_of_controllers_is_reported(
    layers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(layers, tmp_path / "run")
    (run / "metrics.jsonl").write_text((run / "metrics.jsonl").read_text().replace("H_a", "H_x"))
    reseal(run)
    assert main(["trace", str(run), "--view", "controllers", "-o", str(tmp_path / "c.png")]) == 1
    assert "error[MG812]" in capsys.readouterr().err


def test_steps_of_a_scan_are_no_places_of_an_image(run: Path) -> None:
    with pytest.raises(ModgraphError, match="not places"):
        places_picture(traced(run), ".png")
