"""Scans in steps of scans: against numpy, in text and JSON, as source, in bundles, with draws and statistics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from modgraph_runtime import Bundle
from torch import Tensor

import modgraph
from modgraph.backends.report import random_batch
from modgraph.backends.torch import Model
from modgraph.backends.torch.source import write_source
from modgraph.inspect.scene.build import scene_of
from modgraph.ir import OpNode, ScanNode
from modgraph.passes import Hoist
from tests.backends.torch.test_source import made_of
from tests.ir.same import assert_kept
from tests.reference.against_torch import compare, random_model
from tests.reference.against_torch import random_batch as random_arrays

SENTENCES = """model m(width=4) {
  input x: float[sentence, word, width]
  input c: float[width]
  pool p[3] = linear(width)
  router r = linear(k=1)
  scan x as words with s: float[width] = c {
    q = s -> linear(width)
    scan words as w with h: float[width] = q {
      h = tanh(h + w + (c -> linear(width))) + (w -> p by r)
      yield h * s
    } as hs
    s = s + (hs -> last) -> tanh
    yield s
    yield hs -> mean
  } as states, means
  output states
  output means
  loss 0.1 * importance(r)
  loss states -> mean -> sum(axis=-1)
}"""
LENGTHS = {"sentence_length": torch.tensor([3, 1, 2]), "word_length": torch.tensor([2, 4, 1])}


def sequences() -> dict[str, Tensor]:
    """Sentences whose padding, of words and of sentences, is no number."""
    x = torch.randn(3, 3, 4, 4, dtype=torch.float64)
    for at in range(3):
        x[at, LENGTHS["sentence_length"][at] :] = float("nan")
        x[at, :, LENGTHS["word_length"][at] :] = float("nan")
    return {"x": x, "c": torch.randn(3, 4, dtype=torch.float64), **LENGTHS}


def randomised(program: modgraph.Program) -> Model:
    model = program.build(seed=3).double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn_like(weight) * 0.7)
    return model


@pytest.fixture(scope="module")
def sentences() -> Model:
    torch.manual_seed(0)
    return randomised(modgraph.loads(SENTENCES))


def test_the_inner_scan_runs_anew_in_each_step_over_the_words_of_the_example(sentences: Model) -> None:
    batch = sequences()
    found = sentences.compute(batch, losses=False).outputs
    weights = {name: each.detach().numpy() for name, each in sentences.named_parameters()}

    def linear(name: str, x: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        return np.asarray(weights[f"{name}.weight"] @ x + weights[f"{name}.bias"])

    for at in range(3):
        c, s = batch["c"][at].numpy(), batch["c"][at].numpy()
        for sentence in range(int(LENGTHS["sentence_length"][at])):
            h, results = linear("states.q.linear", s), []
            for word in range(int(LENGTHS["word_length"][at])):
                w = batch["x"][at, sentence, word].numpy()
                scores = weights["r.weight"] @ w
                share = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
                best = int(scores.argmax())
                h = np.tanh(h + w + linear("states.hs.h.linear", c)) + share[best] * linear(f"p.{best}.linear", w)
                results.append(h * s)
            s = np.tanh(s + results[-1])
            np.testing.assert_allclose(found["states"][at, sentence].detach(), s, atol=1e-12)
            np.testing.assert_allclose(found["means"][at, sentence].detach(), np.mean(results, axis=0), atol=1e-12)


def test_what_is_stored_and_read_back_is_the_same_and_records_have_both_axes_of_steps() -> None:
    graph = modgraph.loads(SENTENCES).ir
    assert_kept(graph)
    record = graph.records()["states.hs.p.gates"]
    assert graph.type_of(record).dimensions == ("sentence", "word", 1, 3)
    (decision,) = graph.decisions("r")
    assert [axis.name for axis in decision.token_axes][:2] == ["sentence", "word"]


@pytest.mark.parametrize("training", [False, True])
def test_the_interpreter_computes_the_same(training: bool) -> None:
    program = modgraph.loads(SENTENCES)
    compare(program, random_arrays(program), random_model(program), training)


def test_source_computes_the_same(sentences: Model) -> None:
    batch = {key: value.float() if value.is_floating_point() else value for key, value in sequences().items()}
    model = modgraph.loads(SENTENCES).build(seed=3).eval()
    other = made_of(write_source(model)).eval()
    other.load_state_dict(model.state_dict())
    outputs, _ = other(**batch)
    for name, value in model.compute(batch, losses=False).outputs.items():
        torch.testing.assert_close(outputs[name], value, equal_nan=True)


@pytest.mark.slow
def test_a_bundle_agrees_at_lengths_that_nobody_traced(sentences: Model, tmp_path: Path) -> None:
    model = modgraph.loads(SENTENCES).build().eval()
    model.load_state_dict({name: each.float() for name, each in sentences.state_dict().items()})
    modgraph.export(model, tmp_path / "m.onnx")
    bundle, batch = Bundle(tmp_path / "m.onnx"), {key: value.nan_to_num(7.0) for key, value in sequences().items()}
    expected = sentences.compute(batch, losses=False).outputs
    found = bundle.run(
        {key: (value.float() if value.is_floating_point() else value).numpy() for key, value in batch.items()}
    )
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value.detach(), atol=1e-5, err_msg=name)


def test_what_no_round_changes_leaves_both_scans() -> None:
    graph = Hoist()(modgraph.loads(SENTENCES).ir)
    (outer,) = graph.nodes_of(ScanNode)
    (inner,) = outer.region.graph.nodes_of(ScanNode)
    assert "states.hs.h.linear" in graph, "c -> linear reads nothing of a step"
    assert not any(isinstance(node, OpNode) and node.op.name == "linear" for node in inner.region.graph)


def test_costs_and_pictures_count_the_steps_of_both() -> None:
    program = modgraph.loads(SENTENCES)
    costs = {n: program.cost(sentence=n, word=5).nodes["states.hs.h.linear"].macs for n in (1, 3)}
    assert costs == {1: 5 * 16, 3: 3 * 5 * 16}
    assert "states.hs" in str(scene_of(program.ir))


SAMPLED = """router r() for p {
  input x: float[d]
  scores = x -> linear(p)
  choice = scores -> draw
  y = x -> p by choice
  output y
}
model m() {
  input x: float[sentence, word, 4]
  pool p[3] = linear(4)
  router chooser = r
  scan x as words {
    scan words as w { yield w -> p by chooser } as ys
    yield ys
  } as y
  output y
}"""


def test_a_draw_in_the_inner_step_can_be_forced() -> None:
    model = modgraph.loads(SAMPLED).build(seed=0).double().train()
    (name,) = (each for each in model._forced)
    x, choices = torch.randn(2, 3, 5, 4, dtype=torch.float64), torch.randint(3, (2, 3, 5))
    y = model.compute({"x": x, name: choices}).outputs["y"]
    weights, biases = (
        torch.stack([model.get_parameter(f"p.{j}.linear.{each}") for j in range(3)]) for each in ("weight", "bias")
    )
    torch.testing.assert_close(y, torch.einsum("bswe,bswde->bswd", x, weights[choices]) + biases[choices])


def test_a_statistic_of_the_batch_leaves_out_examples_that_have_ended_in_either_scan() -> None:
    text = """model m() { input x: float[sentence, word, 2]
      scan x as words {
        scan words as w { yield w - (w -> batch_mean([])) } as ys
        yield ys
      } as y
      output y }"""
    model = modgraph.loads(text).build().double().train()
    x = torch.randn(3, 2, 2, 2, dtype=torch.float64)
    lengths = {"sentence_length": torch.tensor([2, 1, 2]), "word_length": torch.tensor([2, 2, 1])}
    y = model.compute({"x": x, **lengths}).outputs["y"]
    torch.testing.assert_close(y[0, 1, 0], x[0, 1, 0] - (x[0, 1, 0] + x[2, 1, 0]) / 2)
    torch.testing.assert_close(y[0, 1, 1], torch.zeros(2, dtype=torch.float64))


def test_a_training_step_reaches_all_weights() -> None:
    model = modgraph.loads(SENTENCES).build(seed=0).train()
    model.compute(random_batch(model), routing=True).loss.backward()
    still = [name for name, weight in model.named_parameters() if weight.grad is None]
    assert not still, f"no gradient reaches {still}"
