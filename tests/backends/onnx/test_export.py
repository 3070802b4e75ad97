"""Exports: torch against ONNX Runtime, for every op and router, and what happens when it goes wrong."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from itertools import permutations, product
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from modgraph_runtime import Bundle
from torch import nn

import modgraph
from modgraph.backends.onnx import deterministic
from modgraph.backends.report import describe_lowerings, random_batch
from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.ir import from_json
from tests.examples import OP_EXAMPLES, ROUTER_EXAMPLES, SEQUENCE, TRANSFORMER, together
from tests.traces import shared_traces

TRAINED = {name: text for name, text in OP_EXAMPLES.items() if "target" in text}  # what remains of them is exported
PLAIN = [text for name, text in OP_EXAMPLES.items() if name not in TRAINED]
TOGETHER = 15  # ops in one model: tracing many takes hardly longer than tracing one
EXPORTED = {
    **{f"ops from {at}": together(PLAIN[at : at + TOGETHER]) for at in range(0, len(PLAIN), TOGETHER)},
    **TRAINED,
    **ROUTER_EXAMPLES,
}


def agree(model: modgraph.Model, path: Path, sizes: tuple[int, ...] = (1, 3, 64), routing: bool = False) -> None:
    """Hold a written bundle against torch on fresh inputs."""
    bundle = Bundle(path)
    inference = deterministic(model)
    for size in sizes:
        batch = random_batch(inference, size)
        with torch.no_grad():
            computed = inference.compute(batch, losses=False, routing=routing)
        found = bundle.run({name: value.numpy() for name, value in batch.items()}, routing=routing)
        for name, theirs in {**computed.outputs, **computed.routing}.items():
            scale = max(float(theirs.abs().max()), 1e-6)
            assert np.abs(found[name] - theirs.numpy()).max() <= 1e-5 * scale, (name, size)


@pytest.mark.some(6)
@pytest.mark.usefixtures("trace_once")
@pytest.mark.parametrize("name", EXPORTED)
def test_every_op_and_router_computes_the_same_in_onnx_runtime(name: str, tmp_path: Path) -> None:
    model = modgraph.loads(EXPORTED[name]).build()
    modgraph.export(model, tmp_path / "m.onnx")
    agree(model, tmp_path / "m.onnx", (1, 3))


ALONG = ("top_k(2)", "log_softmax -> draw", "sort_order", "kth_largest(2)", "cumulative_sum", "top_k -> dispatch(2)")
GIVEN = {
    "w": "weight w: float[3, 4] = normal(1)",
    "o": "weight o: float[4] = normal(1)",
    "x": "input x: float[3, 4]",
    "v": "input v: float[2, 3, 4]",
}
PAIRS = {  # ops of two operands, the first of which may be one for all examples
    "contract": ("({}, {}) -> contract", "({}, {}) -> contract(axis=-2)"),
    "attention": ("({}, {}) -> attention(2)",),
    "arithmetic": ("{} - {}", "{} < {}", "({}, {}) -> minimum", "({} > 0, 1, {}) -> where"),
    "joined": ("({}, {}) -> concat", "({}, {}) -> stack", "({}, {}) -> expand(-2)"),
    "choices": ("({}, {} -> top_k) -> masked_softmax", "({}, {}) -> training_or_inference"),
}


def pairs(uses: tuple[str, ...], along: tuple[str, ...]) -> list[str]:
    """Models in which an op takes a weight and a value, or two of unequal rank, in either order, before another op."""
    found = []
    for use, (first, second), each in product(uses, permutations(GIVEN, 2), along):
        given = f"input z: float[3, 4] {GIVEN[first]} {GIVEN[second]}"
        text = f"model example() {{ {given} u = {use.format(first, second)} -> {each} y = u output y }}"
        with suppress(ModgraphError):  # what does not fit is told
            modgraph.loads(text)
            found.append(text)
    assert found, "none of these fits"
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("trace_once")
@pytest.mark.parametrize("op", [pytest.param(op, marks=[] if op == "contract" else pytest.mark.slow) for op in PAIRS])
def test_operands_may_stand_in_any_order(op: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    few = op == "contract" and not request.config.getoption("--slow")
    every = pairs(PAIRS[op][:1], ALONG[:1]) if few else pairs(PAIRS[op], ALONG)
    for at in range(0, len(every), 4 * TOGETHER):
        model = modgraph.loads(together(every[at : at + 4 * TOGETHER])).build()
        modgraph.export(model, tmp_path / "m.onnx", force=True)
        agree(model, tmp_path / "m.onnx", (1, 3))


def deeper(text: str, outer: tuple[int, ...]) -> str:
    """An example whose inputs and targets have more outer axes."""
    lengths = "".join(f"{length}, " for length in outer)
    return re.sub(r"((?:input|target) \w+: (?:float|token|class)\[)", rf"\g<1>{lengths}", text)


@pytest.mark.slow
@pytest.mark.usefixtures("trace_once")
@pytest.mark.parametrize("outer", [(2,), (2, 3), (2, 3, 2)])
def test_every_op_that_takes_outer_axes_is_exported_with_them(outer: tuple[int, ...], tmp_path: Path) -> None:
    fits = []
    for text in (deeper(text, outer) for text in (*PLAIN, *TRAINED.values(), *ROUTER_EXAMPLES.values())):
        with suppress(ModgraphError):
            modgraph.loads(text)
            fits.append(text)
    assert len(fits) > len(PLAIN) / 2, "outer axes fit most ops"
    separate = [text for text in fits if "target" in text or "loss" in text]
    plain = [text for text in fits if text not in separate]
    groups = [together(plain[at : at + TOGETHER]) for at in range(0, len(plain), TOGETHER)]
    for text in (*groups, *separate):
        model = modgraph.loads(text).build()
        modgraph.export(model, tmp_path / "m.onnx", force=True)
        agree(model, tmp_path / "m.onnx", (1, 3))


@pytest.mark.some(1)
@pytest.mark.usefixtures("trace_once")
@pytest.mark.parametrize(
    "parameters",
    [
        {"iterations": 0},
        {"iterations": 2, "modules": 3},
        {"iterations": 2, "bias": True, "update": "normalised", "residual": True},
    ],
)
def test_smn_agrees_with_its_routing_at_every_batch_size(parameters: dict[str, object], tmp_path: Path) -> None:
    model = modgraph.load("specs/smn.mod", **parameters).build()
    report = modgraph.export(model, tmp_path / "smn.onnx", routing=True)
    assert report.verified.worst < 1e-5
    assert report.verified.unreached == {"specialist": []}
    agree(model, tmp_path / "smn.onnx", routing=True)


ORDINARY = {
    "mlp": """input x: float[6] target label: class[3]
        logits = x -> linear(16) -> relu -> dropout(0.5) -> linear(16) -> relu -> linear(3)
        output logits loss cross_entropy(logits, label)""",
    "cnn": """input x: float[3, 16, 12] target label: class[3]
        h = x -> conv(8, kernel=3, padding=1) -> batch_norm -> relu -> max_pool(2)
        h = h + (h -> conv(8, kernel=4, padding="same") -> batch_norm -> relu)
        logits = h -> avg_pool(2) -> flatten -> linear(3)
        output logits loss cross_entropy(logits, label)""",
    "tagger": """input words: token[time, 20]
        h = words -> embedding(8) -> position(length=12)
        h = h + (h -> layer_norm -> attention(2, causal=true))
        tags = h -> linear(4) output tags""",
}


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_networks_agree_with_weights_and_statistics_as_trained(name: str, tmp_path: Path) -> None:
    model = modgraph.loads(f"model m() {{ {ORDINARY[name]} }}").build().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        computed = model.compute(random_batch(model, 8))
        sum((value.square().mean() for value in computed.outputs.values()), torch.zeros(())).backward()
        optimizer.step()
    report = modgraph.export(model, tmp_path / "m.onnx")
    assert report.verified.worst < 1e-5
    agree(model, tmp_path / "m.onnx")


@pytest.mark.slow
@pytest.mark.usefixtures("trace_once")
@pytest.mark.parametrize("lowering", ["dense", "message_passing"])
def test_a_transformer_agrees_whichever_lowering_it_was_trained_in(lowering: str, tmp_path: Path) -> None:
    model = modgraph.loads(TRANSFORMER).build(lowering=lowering)
    modgraph.export(model, tmp_path / "t.onnx")
    agree(model, tmp_path / "t.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2])
def test_experts_agree_whichever_lowering_they_were_trained_in(k: int, tmp_path: Path) -> None:
    model = modgraph.load("specs/gmoe_digits.mod", k=k, depth=1, sparse=[0], experts=3).build()
    report = modgraph.export(model, tmp_path / "g.onnx")
    assert report.verified.worst < 1e-5
    assert "each module runs once, on the tokens that chose it" in str(report)
    agree(model, tmp_path / "g.onnx")


@pytest.mark.slow
@pytest.mark.usefixtures("trace_once")
@pytest.mark.parametrize("lowering", ["grouped", "per_module", "message_passing"])
@pytest.mark.parametrize("router", ["cosine(k=2, noise=0.3, capacity=1.5)", "linear(k=1)"])
def test_unlike_experts_agree_whichever_lowering_they_were_trained_in(
    lowering: str, router: str, tmp_path: Path
) -> None:
    text = f"""model m() {{
      input x: float[9, 6]
      pool p = [linear(8) -> gelu -> linear(6), linear(6), identity]
      router r = {router}
      y = x -> p by r
      output y
    }}"""
    model = modgraph.loads(text).build(lowering=lowering)
    report = modgraph.export(model, tmp_path / "m.onnx", routing=True)
    assert report.verified.unreached == {"p": []}
    agree(model, tmp_path / "m.onnx", routing=True)


@pytest.mark.usefixtures("trace_once")
def test_an_axis_of_any_length_stays_one(tmp_path: Path) -> None:
    model = modgraph.loads(SEQUENCE).build()
    modgraph.export(model, tmp_path / "s.onnx")
    bundle = Bundle(tmp_path / "s.onnx")
    for time in (1, 4, 33):
        words = torch.randint(20, (3, time))
        length = torch.randint(1, time + 1, (3,))
        expected = deterministic(model)(words, length).detach().numpy()
        found = bundle.run({"words": words.numpy(), "time_length": length.numpy()})["logits"]
        np.testing.assert_allclose(found, expected, atol=1e-5)
        full = bundle.run({"words": words.numpy()})["logits"]
        np.testing.assert_allclose(full, deterministic(model)(words).detach().numpy(), atol=1e-5)


@pytest.fixture(scope="module")
def smn(tmp_path_factory: pytest.TempPathFactory, traces: Path) -> Path:
    path = tmp_path_factory.mktemp("smn") / "smn.onnx"
    description = {"classes": {"label": [f"digit {d}" for d in range(10)]}, "preprocessing": {"image": "as is"}}
    with shared_traces(traces):
        modgraph.export(modgraph.load("specs/smn.mod", iterations=1).build(), path, description=description)
    return path


def test_the_manifest_says_everything_and_the_graph_reads_back(smn: Path) -> None:
    manifest = json.loads(smn.with_suffix(".json").read_text())
    assert manifest == Bundle(smn).manifest
    assert manifest["parameters"] == modgraph.load("specs/smn.mod").ir.parameters | {"iterations": 1}
    assert manifest["inputs"] == [{"name": "image", "dtype": "float", "shape": [1, 28, 28]}]
    assert manifest["classes"]["logits"][3] == "digit 3"
    assert from_json(manifest["ir"]).hash() == manifest["hash"]
    assert manifest["verified"]["batches"] == [1, 3, 64]


def test_the_file_keeps_nothing_of_the_trace(smn: Path) -> None:
    proto = onnx.load(smn)
    assert not proto.graph.value_info
    assert str(Path.cwd()).encode() not in smn.read_bytes()
    assert all(not node.metadata_props and not node.doc_string for node in proto.graph.node)


def test_weights_and_axes_keep_their_names_in_the_file(smn: Path) -> None:
    graph = onnx.load(smn).graph
    assert {"glimpses.conv.weight", "agree.weight", "logits.linear.bias"} <= {each.name for each in graph.initializer}
    assert [axis.dim_param or axis.dim_value for axis in graph.output[0].type.tensor_type.shape.dim] == ["batch", 10]


class Wrong(nn.Module):
    """Computes one thing when traced and another when run: an export that must not count."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if torch.compiler.is_compiling() else x


def test_an_export_that_computes_something_else_leaves_the_old_file(tmp_path: Path) -> None:
    model = modgraph.loads("model m() { input x: float[4] y = x -> relu output y }").build()
    modgraph.export(model, tmp_path / "m.onnx")
    before = (tmp_path / "m.onnx").read_bytes()
    import modgraph.backends.onnx.bundle as bundle

    plain = bundle.deterministic
    try:
        bundle.deterministic = lambda *given: _spoiled(plain(*given))  # type: ignore[assignment]
        with pytest.raises(modgraph.ModgraphError, match="differs by"):
            modgraph.export(model, tmp_path / "m.onnx")
    finally:
        bundle.deterministic = plain
    assert (tmp_path / "m.onnx").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"m.onnx", "m.json"}


def _spoiled(model: modgraph.Model) -> modgraph.Model:
    from dataclasses import replace

    model.steps[:] = [replace(step, compute=Wrong()) for step in model.steps]
    for plans in model._plans.values():
        plans.clear()  # which were found when it was built
    return model


@pytest.mark.parametrize("path", ["model.pt", "missing/model.onnx", "folder.onnx"])
def test_places_that_cannot_be_written_are_reported(path: str, tmp_path: Path) -> None:
    (tmp_path / "folder.onnx").mkdir()
    model = modgraph.loads("model m() { input x: float[4] y = x -> relu output y }").build()
    with pytest.raises(modgraph.ModgraphError) as caught:
        modgraph.export(model, tmp_path / path)
    assert caught.value.diagnostics[0].code in ("MG113", "MG701")


@pytest.mark.usefixtures("trace_once")
def test_compile_writes_a_bundle_or_the_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "specs/smn.mod", "-s", "iterations=1", "-o", str(tmp_path / "smn.onnx")]) == 0
    printed = capsys.readouterr().out
    assert "130,826 parameters" in printed
    assert "factorised" in printed
    assert re.search(r"^exported in \d+\.\d s", printed, re.MULTILINE)
    assert Bundle(tmp_path / "smn.onnx").manifest["parameters"]["iterations"] == 1
    assert main(["compile", "specs/smn.mod", "-o", str(tmp_path / "graph.json")]) == 0
    assert from_json(json.loads((tmp_path / "graph.json").read_text())) == modgraph.load("specs/smn.mod").ir
    assert main(["compile", "specs/smn.mod", "-o", str(tmp_path / "smn.txt")]) == 1
    assert main(["compile", "specs/smn.mod", "--lowering", "grouped"]) == 1
    assert "MG112" in capsys.readouterr().err


def test_routes_of_which_the_same_is_said_are_one_line_where_they_are_many() -> None:
    facts = {f"net.block.{at}.mlp": "dense" for at in range(4)} | {f"net.{name}": "gathered" for name in "ab"}
    of_two = ["route net.a: gathered", "route net.b: gathered"]
    assert describe_lowerings(facts) == ["net.block.… (4 routes): dense", *of_two]
    assert describe_lowerings({name: "dense" for name in "abcd"}, when=" here") == ["… (4 routes) here: dense"]


CONSTANTS = ("0.000000001", "1.000001", "0.9999999", "0.0", "1.0", "1000000000000.0")
ARITHMETIC = ("h + {c}", "{c} + h", "h - {c}", "{c} - h", "h * {c}", "{c} * h", "h / ({c} + 0.5)", "h / (h + {c})")


def test_no_constant_is_taken_for_zero_or_one(tmp_path: Path) -> None:
    """onnxscript's own rules drop what adds less than 1e-8 or multiplies by one and a little."""
    terms = [term.format(c=constant) for term in ARITHMETIC for constant in CONSTANTS]
    outputs = " ".join(f"y{at} = {term} output y{at}" for at, term in enumerate(terms))
    model = modgraph.loads(f"model m() {{ input x: float[4] h = x -> relu {outputs} }}").build().eval()
    modgraph.export(model, tmp_path / "m.onnx")
    x = torch.tensor([[1e-9, 1e-4, 0.1, 0.7], [1.0, 2.0, 30.0, 1e6]])
    found = Bundle(tmp_path / "m.onnx").run({"x": x.numpy()})
    for name, expected in model.compute({"x": x}).outputs.items():
        np.testing.assert_allclose(found[name], expected.detach().numpy(), rtol=3e-7, err_msg=terms[int(name[1:])])


WEIGHTED = """
model weighted() {
  pool p[3] = linear(4)
  input x: float[time, 5, 6]
  input w: float[slot, time, 5, p]
  pool q[p] = linear(4) -> tanh
  pool r[p] = linear(2) -> gelu
  scores = x -> linear(p)
  mixed = x -> q by (scores -> softmax(axis="p"))
  slots = x -> q by w
  means = x -> p by (scores -> softmax(axis="time")) over time
  places = x -> p by (scores -> softmax(axis=-2)) over -2
  rows = means -> r by (scores -> softmax(axis="p"))
  output mixed
  output slots
  output means
  output places
  output rows
}
"""


def test_routes_by_weights_agree_over_modules_and_over_tokens(tmp_path: Path) -> None:
    model = modgraph.loads(WEIGHTED).build()
    modgraph.export(model, tmp_path / "m.onnx")
    agree(model, tmp_path / "m.onnx", (1, 3))
