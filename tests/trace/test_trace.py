"""Traces: that they show what the routers did, round by round, and say what cannot be shown."""

from __future__ import annotations

import base64
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from PIL import Image

from modgraph.cli import main
from modgraph.data import Arrays
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Result, find_dependencies
from modgraph.program import loads
from modgraph.trace.places_picture import pixels_of as pixels_of_image
from modgraph.trace.places_picture import places_picture
from modgraph.trace.statistics import pick_rounds
from modgraph.trace.steps import Places, find_places_of_tokens
from modgraph.trace.summary import as_json, as_table
from modgraph.trace.trace import Trace
from modgraph.trace.trace_run import record, trace_run
from modgraph.training.run import finish, start_run
from modgraph.training.stored_run import load_run
from tests.nn.test_agreement import numpy_agreement

SPEC = """
model digits(modules=3, iterations=4, options=false) {
  input  image: float[1, 8, 6]
  target label: class[10]
  pool   p[modules] = linear(8)
  router agree = agreement(iterations, bias=options, residual=options)
  s = image -> conv(5, kernel=3) -> relu -> tokens -> p by agree
  logits = s -> mean -> linear(10)
  output logits
  loss cross_entropy(logits, label)
}
"""
TRANSFORMER = """
model tiny(dim=8) {
  input  image: float[3, 8, 12]
  target label: class[10]
  router gate = noisy_top_k(k=2, noise=false)
  x = image -> patch_embed(4, dim) -> class_token -> position
  repeat blocks[i] in 0..2 {
    pool expert[4] = linear(dim) -> gelu
    x = x + (x -> layer_norm -> attention(2))
    x = x + (x -> layer_norm -> expert by gate)
  }
  logits = x -> select(0) -> linear(10)
  output logits
  loss cross_entropy(logits, label)
}
"""
SEQUENCE = """
model sequence(iterations=3) {
  input  words: token[time, 20]
  target label: class[3]
  pool   p[2] = linear(6)
  router r = agreement(iterations)
  x = words -> embedding(6)
  s = (x -> p by r) -> p by r -> mean
  logits = s -> linear(3)
  output logits
  loss cross_entropy(logits, label)
}
"""
RNG = np.random.default_rng(0)
LENGTHS = np.array([5, 1, 3, 4] * 10)
DATA = {
    "digits": {"image": RNG.random((40, 1, 8, 6))},
    "tiny": {"image": RNG.random((40, 3, 8, 12))},
    "sequence": {"words": RNG.integers(0, 20, (40, 5)), "time_length": LENGTHS},
}


def trained(folder: Path, text: str, **parameters: Any) -> Path:
    """A run of one epoch over forty random examples."""
    name = text.split("(")[0].split()[-1]
    np.savez(folder / "data.npz", **DATA[name], label=np.arange(40) % 3)  # type: ignore[arg-type]
    (folder / "net.mod").write_text(text)
    train = "{epochs: 1, batch: 10, optimizer: {name: sgd, lr: 0.1}}"
    (folder / "net.yaml").write_text(
        f"data: {{name: npz, train: {folder}/data.npz, test: {folder}/data.npz}}\ntrain: {train}\n"
    )
    with start_run(str(folder / "net.mod"), None, parameters, str(folder / "run")) as engine:
        finish(engine)
    return folder / "run"


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("digits"), SPEC)


@pytest.fixture(scope="module")
def transformer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("transformer"), TRANSFORMER)


@pytest.fixture(scope="module")
def sequence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("sequence"), SEQUENCE)


# ---------------------------------------------------------------- rounds


@pytest.mark.some(1)
@pytest.mark.parametrize(("iterations", "options"), [(0, False), (1, True), (4, False), (4, True)])
def test_the_arrays_are_those_of_algorithm_1_after_each_round(tmp_path: Path, iterations: int, options: bool) -> None:
    run = trained(tmp_path, SPEC, iterations=iterations, options=options)
    assert main(["trace", str(run), "-o", str(tmp_path / "t.npz"), "--examples", "5"]) == 0
    found = np.load(tmp_path / "t.npz")
    model = load_run(run).model()
    image = torch.from_numpy(found["image"])
    with torch.no_grad():
        tokens = model.results({"image": image}, (model.graph.inputs("s.p")["tokens"],))[0].double()
        pool, router = model.double().get_submodule("p"), model.get_submodule("agree")
        messages = torch.stack([pool.expert(j)(tokens) for j in range(3)], dim=2).numpy()  # type: ignore[operator]
        bias = router.get_parameter("bias") if options else None
        keys = torch.nn.functional.linear(tokens, router.get_parameter("weight"), bias).numpy()
    rounds = range(1, iterations + 1) if iterations else [0]
    assert found["p.gates"].shape == found["p.scores"].shape == (len(rounds), 5, 24, 3)
    for at, t in enumerate(rounds):
        for example in range(5):
            _, c, alpha = numpy_agreement(messages[example], keys[example], t)
            np.testing.assert_allclose(found["p.gates"][at, example], c, atol=1e-5)
            np.testing.assert_allclose(found["p.scores"][at, example], alpha, atol=1e-5)


@pytest.mark.slow
def test_the_last_round_is_what_the_model_does_and_inputs_stand_next_to_it(digits: Path, tmp_path: Path) -> None:
    run = load_run(digits)
    assert main(["trace", str(digits), "-o", str(tmp_path / "t.npz")]) == 0
    found = np.load(tmp_path / "t.npz")
    data = run.splits()["test"].values
    assert set(found) == {"image", "label", "p.gates", "p.scores"}
    for name in ("image", "label"):
        np.testing.assert_array_equal(found[name], data[name][:4])
    routing = run.model().compute({"image": torch.from_numpy(found["image"])}, losses=False, routing=True).routing
    for name, value in routing.items():
        np.testing.assert_allclose(found[name][-1], value.detach().numpy(), atol=1e-6)


def test_a_shared_router_is_cut_short_on_only_one_route(sequence: Path) -> None:
    """The second route's rounds start from what the first yields after all of its own."""
    run = load_run(sequence)
    model, arrays = run.model(), run.splits()["test"]
    needed = find_dependencies(model.graph, [Result("s.mean")]).nodes
    second = [route for route in model.graph.decisions() if route.name in needed][-1]
    gates = record(model, arrays, second).gates
    batch = {name: torch.from_numpy(array) for name, array in arrays.values.items()}
    routing = model.compute(batch, losses=False, routing=True).routing
    assert len(gates) == 3
    np.testing.assert_allclose(gates[-1], routing[f"{second.label}.gates"].detach().numpy(), atol=1e-6)
    entering = model.results(batch, tuple(model.graph.inputs(second.name).values()))[0].detach().double()
    weight = model.get_submodule("r").get_parameter("weight").detach().double()
    experts = [model.double().get_submodule("p").expert(j) for j in range(2)]  # type: ignore[operator]
    messages = torch.stack([expert(entering) for expert in experts], dim=2).detach().numpy()
    for t in range(3):
        _, c, _ = numpy_agreement(messages[0], (entering[0] @ weight.T).numpy(), t + 1)
        np.testing.assert_allclose(gates[t, 0], c, atol=1e-5)


def test_examples_in_batches_are_traced_as_one_by_one(digits: Path) -> None:
    run = load_run(digits)
    model, route = run.model(), run.graph.decisions()[-1]
    image = RNG.random((300, 1, 8, 6)).astype(np.float32)
    many = record(model, Arrays({"image": image}), route).gates
    last = record(model, Arrays({"image": image[-1:]}), route).gates
    assert many.shape[1] == 300
    np.testing.assert_allclose(many[:, -1:], last, atol=1e-6)


def test_weights_that_are_no_numbers_are_reported(digits: Path) -> None:
    run = load_run(digits)
    model, route = run.model(), run.graph.decisions()[-1]
    with torch.no_grad():
        model.get_parameter("agree.weight").fill_(torch.nan)
    with pytest.raises(ModgraphError, match="infinite or NaN"):
        record(model, run.splits()["test"], route)


# ---------------------------------------------------------------- summaries


def test_the_summary_is_of_the_gates(digits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(digits), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["split"], summary["examples"]) == ("test", 40)
    route = summary["routes"]["p"]
    assert route["pool"] == "p" and route["router"].startswith("agreement")
    gates = trace_run(load_run(digits)).routes[0].gates.astype(np.float64)
    for found, c in zip(route["rounds"], gates, strict=True):
        np.testing.assert_allclose(found["use"], c.mean((0, 1)), atol=1e-6)
        np.testing.assert_allclose(found["largest_gate"], c.max(-1).mean(), atol=1e-6)
        np.testing.assert_allclose(found["entropy"], -(c * np.log(c)).sum(-1).mean(), atol=1e-6)


def test_the_table_has_a_column_for_each_round(digits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(digits)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "40 examples of test"
    assert lines[2].startswith("p: p by agreement")
    assert lines[3].split() == ["round", "1", "round", "2", "round", "3", "round", "4"]
    assert [line.split()[0] for line in lines[4:9]] == ["p.0", "p.1", "p.2", "largest", "entropy"]
    assert len({len(line) for line in lines[3:9]}) == 1


def test_a_member_that_is_picked_counts_as_use(transformer: Path) -> None:
    trace = trace_run(load_run(transformer), route="blocks.1.expert")
    (route,) = trace.routes
    (use,) = [each["use"] for each in as_json(trace)["routes"]["blocks.1.expert"]["rounds"]]
    np.testing.assert_allclose(use, route.records["selected"].mean((0, 1, 2)) / 2, atol=1e-6)
    assert "round" not in as_table(trace, as_json(trace))


def test_padding_does_not_count(sequence: Path) -> None:
    trace = trace_run(load_run(sequence))
    gates = trace.routes[0].gates[-1].astype(np.float64)
    unpadded = np.concatenate([gates[i, : LENGTHS[i]] for i in range(len(gates))])
    found = as_json(trace)["routes"][trace.routes[0].name]["rounds"][-1]
    np.testing.assert_allclose(found["use"], unpadded.mean(0), atol=1e-6)
    np.testing.assert_allclose(found["entropy"], -(unpadded * np.log(unpadded)).sum(-1).mean(), atol=1e-6)


def test_an_input_may_have_any_name(digits: Path) -> None:
    """`numpy.savez` takes no array called "file"."""
    traced = trace_run(load_run(digits), examples=2)
    traced = replace(traced, arrays=Arrays({"file": np.arange(3)}))
    with np.load(io.BytesIO(traced.as_npz())) as found:
        assert found["file"].tolist() == [0, 1, 2]


@pytest.mark.slow
def test_the_summary_is_written_too(digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(digits), "--json", "-o", str(tmp_path / "t.json"), "--split", "train"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert json.loads((tmp_path / "t.json").read_text()) == printed
    assert printed["split"] == "train"


@pytest.mark.parametrize("rounds", [1, 2, 8, 9, 30, 1000])
def test_of_many_rounds_the_first_and_last_are_displayed(rounds: int) -> None:
    displayed = pick_rounds(rounds)
    assert (displayed[0], displayed[-1]) == (0, rounds - 1)
    assert displayed == sorted(set(displayed))
    assert len(displayed) == min(rounds, 8)


# ---------------------------------------------------------------- places

IMAGE = "model m() { input image: float[4, 8, 6] input other: float[5, 6] input v: float[4] "
PLACES = {
    "x = image -> tokens": Places("image", 8, 6),
    "x = image -> max_pool(2) -> tokens -> linear(3) -> relu -> layer_norm": Places("image", 4, 3),
    "x = image -> patch_embed(2, 4) -> class_token -> position -> attention(2)": Places("image", 4, 3, 1),
    "t = image -> patch_embed(2, 4) x = v + t * 2": Places("image", 4, 3),
    "t = image -> tokens x = (t, t -> linear(2)) -> concat": Places("image", 8, 6),
    "t = image -> tokens pool p[2] = linear(4) router r = noisy_top_k x = t -> p by r": Places("image", 8, 6),
    "t = image -> tokens pool p[48] = linear(4) router r = agreement x = t -> p by r": None,
    "x = image -> tokens -> mean": None,
    "x = other -> linear(4)": None,
    "x = image -> flatten": None,
}


@pytest.mark.parametrize("statements", PLACES)
def test_tokens_lie_where_the_graph_says(statements: str) -> None:
    graph = loads(f"{IMAGE} {statements} output x }}").ir
    assert find_places_of_tokens(graph).get(graph.outputs["x"].node) == PLACES[statements]


def test_places_of_two_images_are_not_distinguished() -> None:
    graph = loads("model m() { input a: float[1, 4, 4] input b: float[1, 4, 4] x = a + b -> tokens output x }").ir
    assert find_places_of_tokens(graph) == {}


# ---------------------------------------------------------------- pictures


def pixels_of(trace: Trace) -> np.ndarray[Any, Any]:
    return np.asarray(Image.open(io.BytesIO(places_picture(trace, ".png")))) / 255


def images_in(svg: bytes) -> list[tuple[float, float, np.ndarray[Any, Any]]]:
    """The images of a file, each with the place that the file gives it: x, y, pixels from 0 to 1."""
    found = []
    for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}image"):
        across, down = (
            float(each) for each in re.findall(r"translate\(([-\d.]+),([-\d.]+)\)", element.attrib["transform"])[0]
        )
        data = base64.b64decode(element.attrib["{http://www.w3.org/1999/xlink}href"].partition(",")[2])
        found.append((across, down, np.asarray(Image.open(io.BytesIO(data))) / 255))
    return found


def test_a_picture_has_a_row_for_each_module_and_a_column_for_each_round(digits: Path) -> None:
    trace = trace_run(load_run(digits)).first(2)
    images = images_in(places_picture(trace, ".svg"))
    assert len({across for across, _, _ in images}) == 5, "the image and four rounds"
    assert len({down for _, down, _ in images}) == 2 * 3, "three modules of each of two examples"
    assert len(images) == 2 * (1 + 3 * 4)
    coloured = [np.ptp(pixels, axis=-1).max() > 0.05 for _, _, pixels in images]
    assert coloured.count(False) == 2, "an image has its own colours, which are grey"


@pytest.mark.slow
def test_pictures_of_one_trace_are_equal(digits: Path) -> None:
    trace = trace_run(load_run(digits)).first(1)
    for suffix in (".png", ".svg", ".pdf"):
        assert places_picture(trace, suffix) == places_picture(trace, suffix)


@pytest.mark.some(1)
@pytest.mark.parametrize(("modules", "iterations"), [(1, 0), (8, 2), (2, 12)])
def test_any_number_of_modules_and_rounds_is_rendered(tmp_path: Path, modules: int, iterations: int) -> None:
    run = trained(tmp_path, SPEC, modules=modules, iterations=iterations)
    shape = pixels_of(trace_run(load_run(run)).first(1)).shape
    assert shape[0] > 120 * modules
    assert shape[1] > 120 * (1 + min(max(iterations, 1), 8))


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("suffix", "head"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF"), ("PNG", b"\x89PNG")]
)
def test_pictures_are_written_by_suffix(transformer: Path, tmp_path: Path, suffix: str, head: bytes) -> None:
    path = tmp_path / f"maps.{suffix}"
    assert main(["trace", str(transformer), "-o", str(path), "--examples", "1"]) == 0
    assert path.read_bytes().startswith(head)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_names_of_classes_are_no_formulas(digits: Path) -> None:
    trace = trace_run(load_run(digits)).first(1)
    assert len(trace.predicted) > 0
    names = tuple("$\\frac{" for _ in trace.predicted)
    named = replace(trace, labels={"label": names}, predicted=names)
    assert places_picture(named, ".png") != places_picture(trace, ".png")


def test_odd_names_and_images_are_rendered() -> None:
    assert pixels_of_image(np.full((1, 2, 3), 7.0)).tolist() == [[[0.0] * 3] * 3] * 2
    assert pixels_of_image(np.arange(12.0).reshape(3, 2, 2)).shape == (2, 2, 3)
    grey = pixels_of_image(np.arange(8.0).reshape(2, 2, 2))
    assert grey.max() == 1 and (np.ptp(grey, axis=-1) == 0).all()


# ---------------------------------------------------------------- mistakes

MISTAKES = {
    "suffix": (["-o", "trace.gif"], "MG804"),
    "no suffix": (["-o", "trace"], "MG804"),
    "split": (["--split", "tests"], 'did you mean "test"'),
    "route": (["--route", "s.p"], "known: p"),
    "key": (["-s", "train.seed=1"], "MG605"),
    "folder": (["-o", "nowhere/t.npz"], "MG113"),
    "rows": (["-o", "t.png", "--examples", "43"], "MG806"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_reported_and_nothing_is_written(
    digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mistake: str
) -> None:
    arguments, words = MISTAKES[mistake]
    monkeypatch.chdir(tmp_path)
    examples = np.load(digits.parent / "data.npz")
    np.savez(tmp_path / "more.npz", **{name: np.concatenate([examples[name]] * 2) for name in examples})
    arguments = [*arguments, "-s", f'data.test="{tmp_path}/more.npz"']
    assert main(["trace", str(digits), *arguments]) == 1
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.out == ""
    assert [each.name for each in tmp_path.iterdir()] == ["more.npz"]


@pytest.mark.parametrize("count", ["0", "-1", "x", "1.5", "9" * 5000, "٣"])
def test_examples_are_counted_from_one(digits: Path, count: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["trace", str(digits), "--examples", count])
    assert caught.value.code == 1
    assert "a whole number from 1" in capsys.readouterr().err


def test_words_have_no_places(sequence: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(sequence), "-o", str(tmp_path / "t.png")]) == 1
    assert "error[MG805]" in capsys.readouterr().err
    assert main(["trace", str(sequence), "-o", str(tmp_path / "t.npz")]) == 0
    assert [each.name for each in tmp_path.iterdir()] == ["t.npz"]


def test_a_model_needs_a_route(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = trained(tmp_path, SPEC.replace("-> p by agree", "-> p -> mean"))
    assert main(["trace", str(run)]) == 1
    assert "error[MG801]" in capsys.readouterr().err


def test_a_run_needs_a_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = trained(tmp_path, SPEC)
    for file in (run / "checkpoints").iterdir():
        file.unlink()
    for folder, code in ((run, "MG603"), (tmp_path, "MG602"), (tmp_path / "none", "MG602")):
        assert main(["trace", str(folder)]) == 1
        assert f"error[{code}]" in capsys.readouterr().err
