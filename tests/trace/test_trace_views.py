"""The views of a trace: the expert of each place, experts by class and domain, and their use over a training."""

from __future__ import annotations

import io
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.inspect.charts.style import choose_colours
from modgraph.metrics.controllers import controllers
from modgraph.store.journal import read_metrics
from modgraph.store.run_directory import RunDirectory
from modgraph.trace import pictures
from modgraph.trace.pictures import groups_picture, training_picture
from modgraph.trace.places_picture import STRENGTH, make_maps, places_picture
from modgraph.trace.statistics import find_groupings, use_by_group
from modgraph.trace.summary import as_json
from modgraph.trace.trace import Trace, list_routes_with_gates
from modgraph.trace.trace_run import read_metrics_over_time, trace_run
from modgraph.trace.views import draw
from modgraph.training.run import finish, resume_run, start_run
from modgraph.training.stored_run import load_run
from tests.nn.gmoe_in_numpy import cosine_logits
from tests.trace.test_trace import images_in

SPEC = "specs/gmoe_digits.mod"
SMALL = {"data.images": 120, "train.epochs": 2, "train.batch": 8, "dim": 8, "experts": 5, "width": 4}
ROUTES = ("blocks.1.expert", "blocks.3.expert")


def trained(out: Path, **options: Any) -> Path:
    settings = {**SMALL, **{name.replace("__", "."): value for name, value in options.items()}}
    with start_run(SPEC, None, settings, str(out)) as engine:
        finish(engine)
    return out


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("digits") / "run")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose tokens go to two experts each."""
    return trained(tmp_path_factory.mktemp("two") / "run", k=2, train__epochs=1)


@pytest.fixture(scope="module")
def traced_again(two: Path) -> Trace:
    return trace_run(load_run(two))


def logits_of(run: Path, trace: Trace, route: str) -> NDArray[np.float64]:
    """The router's logits [B, N, M], by its equations, of the tokens that flow into a route."""
    model = load_run(run).model()
    batch = {"image": torch.from_numpy(trace.arrays.values["image"])}
    with torch.no_grad():
        tokens = model.results(batch, (list_routes_with_gates(model.graph, route)[0].tokens,))[0].double().numpy()
    gate = model.get_submodule(route.replace("expert", "gate"))
    W, b, keys, s = (gate.get_parameter(name).detach().double().numpy() for name in ("weight", "bias", "keys", "scale"))
    return np.stack([cosine_logits(x, W, b, keys, float(s)) for x in tokens])


# ---------------------------------------------------------------- places


@pytest.mark.some(1)
@pytest.mark.parametrize("route", ROUTES)
def test_the_expert_of_a_place_is_the_one_with_the_largest_logit(run: Path, route: str) -> None:
    trace = trace_run(load_run(run), route=route, examples=6)
    (maps,) = make_maps(trace)
    expected = logits_of(run, trace, route)[:, 1:].argmax(-1).reshape(6, 4, 4)
    assert maps.choice is not None
    np.testing.assert_array_equal(maps.choice[..., 0], expected)


@pytest.mark.slow
def test_of_several_experts_the_one_of_the_largest_gate_is_first(two: Path) -> None:
    trace = trace_run(load_run(two), route=ROUTES[0], examples=6)
    (maps,) = make_maps(trace)
    expected = (-logits_of(two, trace, ROUTES[0])[:, 1:]).argsort(-1)[..., :2].reshape(6, 4, 4, 2)
    np.testing.assert_array_equal(maps.choice, expected)


@pytest.mark.some(1)
@pytest.mark.parametrize("k", [1, 2])
def test_every_place_has_the_colour_of_its_expert(run: Path, two: Path, k: int) -> None:
    trace = trace_run(load_run(run if k == 1 else two), split="train", route=ROUTES[1], examples=2)
    (maps,) = make_maps(trace)
    colours = np.array([[int(each[at : at + 2], 16) / 255 for at in (1, 3, 5)] for each in choose_colours(5)])
    images = sorted(images_in(places_picture(trace, ".svg")), key=lambda image: image[1::-1])
    for example, row, column, choice in np.ndindex(2, 4, 4, k):
        (_, _, plain), *maps_of_example = images[example * (1 + k) : (example + 1) * (1 + k)]
        down, across = int((row + 0.6) * len(plain) / 4), int((column + 0.6) * len(plain) / 4)
        found = (maps_of_example[choice][2][down, across] - (1 - STRENGTH) * plain[down, across]) / STRENGTH
        nearest = np.abs(colours - found).sum(-1).argmin()
        assert maps.choice is not None
        assert nearest == maps.choice[example, row, column, choice]


def test_colours_of_many_modules_differ() -> None:
    for modules in (1, 10, 11, 20, 21, 200):
        assert len(set(choose_colours(modules))) == modules


# ---------------------------------------------------------------- groups


def test_use_by_class_and_domain_is_a_count_of_tokens(two: Path) -> None:
    trace = trace_run(load_run(two), split="validation")
    groupings = find_groupings(trace)
    assert list(groupings) == ["class", "domain"]
    route = trace.routes[1]
    for words in groupings.values():
        counts: dict[str, Counter[int]] = {word: Counter() for word in words}
        for example, token, module in zip(*np.nonzero(route.records["selected"][0]), strict=True):
            assert token < 17
            counts[words[example]][int(module)] += 1
        found = use_by_group(route, words)
        assert found.keys() == counts.keys()
        for word, count in counts.items():
            assert found[word] == pytest.approx([count[module] / count.total() for module in range(5)])
    assert list(use_by_group(route, trace.arrays.groups["domain"].tolist())) == ["0", "15", "30", "45", "60"]


def test_the_summary_has_groups_and_training(run: Path) -> None:
    trace = trace_run(load_run(run), split="validation")
    route = as_json(trace)["routes"][ROUTES[0]]
    assert route["by"]["domain"] == use_by_group(trace.routes[0], trace.arrays.groups["domain"].tolist())
    assert np.array(route["training"]).shape == (2, 5)
    probabilities = trace.routes[0].records["probabilities"][0].astype(np.float64)
    entropy = -(probabilities * np.log(probabilities)).sum(-1).mean()
    assert route["rounds"][0]["entropy"] == pytest.approx(entropy, abs=1e-5)


# ---------------------------------------------------------------- training


@pytest.mark.slow
def test_the_use_of_an_epoch_is_that_of_the_tokens_it_saw(tmp_path: Path) -> None:
    """Weights that hardly move, no noise, and each example once: the epoch's use is what a trace of them counts."""
    still = {"train__optimizer": "sgd", "train__optimizer__lr": 1e-12, "noise": 0.0, "train__by": None}
    path = trained(tmp_path / "run", **still, train__augment=None, train__best=None, train__epochs=1)
    trace = trace_run(load_run(path), split="train")
    for route in trace.routes:
        counted = route.records["selected"].mean((0, 1, 2))
        np.testing.assert_allclose(trace.history[route.name], counted[None], atol=1e-6)


@pytest.mark.slow
def test_the_use_of_an_interrupted_training_is_that_of_one_that_was_not(run: Path, tmp_path: Path) -> None:
    path = trained(tmp_path / "run", train__checkpoint_every=2, train__keep=99)
    for file in (path / "checkpoints").iterdir():
        if int(file.stem.removeprefix("step-")) > 6:
            file.unlink()
    with resume_run(str(path)) as engine:
        finish(engine)
    found = [[json.loads(line) for line in (each / "metrics.jsonl").read_text().splitlines()] for each in (path, run)]
    assert found[0] == found[1]


def test_a_log_that_was_cut_off_gives_what_it_has(run: Path, tmp_path: Path) -> None:
    graph = load_run(run).graph
    lines = (run / "metrics.jsonl").read_text().splitlines()
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines)[:-30])
    wanted = {each.route: each.use for each in controllers(graph)}
    found = read_metrics_over_time(read_metrics(RunDirectory(tmp_path)), wanted)
    assert {name: array.shape for name, array in found.items()} == {name: (2, 5) for name in ROUTES}
    assert read_metrics_over_time(read_metrics(RunDirectory(tmp_path / "none")), wanted) == {}


# ---------------------------------------------------------------- the command


HEADS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("view", "suffix"), [("places", "png"), ("places", "svg"), ("groups", "pdf"), ("training", "svg")]
)
def test_views_are_written_by_suffix(two: Path, traced_again: Trace, tmp_path: Path, view: str, suffix: str) -> None:
    path = tmp_path / f"v.{suffix}"
    assert main(["trace", str(two), "--view", view, "-o", str(path), "--examples", "2"]) == 0
    assert path.read_bytes().startswith(HEADS[suffix])
    assert path.read_bytes() == draw(view, traced_again, path.suffix, examples=2)


@pytest.mark.slow
def test_pictures_grow_with_what_they_show(run: Path) -> None:
    trace = trace_run(load_run(run), split="validation")
    one = replace(trace, routes=trace.routes[:1])
    for picture in (groups_picture, training_picture):
        small, large = (np.asarray(Image.open(io.BytesIO(picture(each, ".png")))) for each in (one, trace))
        assert small.size < large.size
        assert np.ptp(large.astype(int), axis=-1).max() > 80, "it has colours"


@pytest.mark.parametrize("arguments", [["--view", "groups"], ["--view", "places", "-o", "t.npz"]])
def test_a_view_needs_a_picture(run: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(["trace", str(run), *arguments]) == 1
    assert "error[MG810]" in capsys.readouterr().err


def test_what_a_view_lacks_is_reported(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = trace_run(load_run(run))
    bare = replace(trace, predicted=(), labels={}, arrays=replace(trace.arrays, groups={}), history={})
    monkeypatch.setattr(pictures, "MOST_ROWS", 19)
    for picture, each, code in (
        (groups_picture, bare, "MG808"),
        (training_picture, bare, "MG809"),
        (groups_picture, trace, "MG806"),
    ):
        with pytest.raises(ModgraphError) as caught:
            picture(each, ".png")
        assert caught.value.diagnostics[0].code == code


@pytest.mark.slow
def test_the_summary_in_a_file_is_json(run: Path, tmp_path: Path) -> None:
    assert main(["trace", str(run), "-o", str(tmp_path / "t.json"), "--split", "validation"]) == 0
    record = json.loads((tmp_path / "t.json").read_text())
    assert {"pool", "router", "rounds", "by", "training", "load", "dead"} <= set(record["routes"][ROUTES[0]])
