"""SEMA's specs: what they cost, what they compute, what descriptors find new, and what a bundle tells of it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from modgraph_runtime import Bundle
from torch import Tensor

import modgraph
from modgraph.backends.onnx import exportable
from modgraph.backends.torch import Model, build
from modgraph.cli import main
from modgraph.inspect.cost import compute_cost
from modgraph.ir import Grow, find_moved_states, weights_of, with_losses
from modgraph.ir.edits import Freeze, replay_edits
from modgraph.passes import BUNDLE, INFERENCE, NoveltyAsOutputs, WithoutNovelty, apply_passes, build_pipeline_behind
from modgraph.store.architecture import read_architecture
from modgraph.training.losses import find_losses, learnt_from, weigh_losses
from modgraph.training.start.weight_map import read_map
from tests.papers.sema_in_numpy import Sema
from tests.passes.ensured import ensures
from tests.training.timm_vit import PARAMETERS, SIZE, timm_forward, timm_tensors

SPEC, TIMM = "specs/sema.mod", "specs/sema_timm.yaml"
ONES = [1] * 12
EXPANSION, COLUMN, FIRST = 223_633, 769, 906_060
TINY: dict[str, Any] = {
    "classes": 5, "dim": 12, "depth": 3, "heads": 3, "width": 3, "size": 8, "patch": 2, "hidden": 4, "channels": 1,
    "adapters": [1, 2, 3], "expands": [1, 2],
}  # fmt: skip


@cache
def trained(**parameters: Any) -> int:
    given = {name: [*each] if isinstance(each, tuple) else each for name, each in parameters.items()}
    return modgraph.load(SPEC, **given).cost().trainable


def test_the_first_task_and_an_expansion_cost_what_the_paper_says() -> None:
    assert trained() == FIRST + 100 * COLUMN
    assert trained(classes=10) == FIRST + 10 * COLUMN
    for layer in (9, 11):
        assert trained(adapters=(*ONES[:layer], 2, *ONES[layer + 1 :])) == trained() + EXPANSION


BY_HAND = {
    ("variant", "bottleneck"): 768 * 16 + 16 + 16 * 768 + 768,
    ("variant", "lora"): 768 * 16 + 16 * 768,
    ("variant", "convpass"): 768 * 16 + 16 + 16 * 16 * 9 + 16 + 16 * 768 + 768,
}


@pytest.mark.some(1)
@pytest.mark.parametrize(("name", "value"), BY_HAND)
def test_adapters_have_the_weights_that_are_counted_by_hand(name: str, value: str) -> None:
    assert trained(**{name: value}) - trained() == 12 * (BY_HAND[name, value] - BY_HAND["variant", "bottleneck"])


def test_a_mixture_of_equal_weights_has_no_columns() -> None:
    assert trained(gating="average") == trained(gating="random") == trained() - 12 * COLUMN


def test_nothing_is_odd_and_a_mistake_is_reported_once() -> None:
    assert not modgraph.load(SPEC).warnings
    with pytest.raises(modgraph.ModgraphError) as caught:
        modgraph.load(SPEC, variant="convpass", per="token")
    assert [each.code for each in caught.value.diagnostics] == ["MG250"]


def model_of(**parameters: Any) -> Model:
    """A small one with random weights, those that start at zero too."""
    model = modgraph.load(SPEC, **{**TINY, **parameters}).build(seed=1).double()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            generator = torch.Generator().manual_seed(sum(name.encode()))
            weight.copy_(torch.randn(weight.shape, dtype=weight.dtype, generator=generator) * 0.4)
    return model


def in_numpy(model: Model, **settings: Any) -> Sema:
    weights = {name: weight.numpy().copy() for name, weight in model.state_dict().items()}
    given = {"adapters": TINY["adapters"], **settings}
    return Sema(weights, expands=TINY["expands"], heads=TINY["heads"], patch=TINY["patch"], **given)


def images_of(count: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(count, 1, 8, 8, dtype=torch.float64, generator=generator)


VARIANTS: list[dict[str, Any]] = [
    {},
    {"variant": "lora", "normed": True},
    {"variant": "convpass"},
    {"per": "token"},
    {"gating": "average", "variant": "convpass"},
    {"gating": "random"},
    {"gating": "top_1", "per": "token"},
    {"gating": "top_1_in_inference"},
]


@pytest.mark.some(2)
@pytest.mark.parametrize("settings", VARIANTS, ids=lambda each: "-".join(map(str, each.values())) or "soft")
def test_the_model_computes_what_numpy_does(settings: dict[str, Any]) -> None:
    model, images = model_of(**settings).eval(), images_of(2)
    reference = in_numpy(model, **settings)
    found = model.compute({"image": images}, losses=False, routing=True)
    for at, image in enumerate(images.numpy()):
        logits, _ = reference(image[:])
        np.testing.assert_allclose(found.outputs["logits"][at].detach(), logits, rtol=0, atol=1e-10)
    for name, gates in found.routing.items():
        if name.endswith("gates") and settings.get("gating", "soft") in ("soft", "average", "random"):
            torch.testing.assert_close(gates.sum(-1), torch.ones_like(gates[..., 0]))


def test_in_training_a_mixture_is_random_or_soft_where_it_is_not_in_inference() -> None:
    images = {"image": images_of(2)}
    random = model_of(gating="random").train()
    gates = [random.compute(images, losses=False, routing=True).routing["blocks.2.adapter.gates"] for _ in range(2)]
    assert not torch.equal(*gates) and not torch.equal(gates[0][0], gates[0][1])
    assert torch.equal(gates[0], gates[0][:, :1].expand_as(gates[0]))  # all tokens of an image alike
    soft, hard = (model_of(gating=each) for each in ("soft", "top_1_in_inference"))
    assert torch.equal(soft.train()(images["image"]), hard.train()(images["image"]))
    assert not torch.equal(soft.eval()(images["image"]), hard.eval()(images["image"]))


def test_a_record_holds_the_last_errors_and_scores_by_them() -> None:
    """Batches of all sizes, one larger than the record."""
    model = model_of(keeps=7).train()
    reference, moved = in_numpy(model, keeps=7), find_moved_states(model.graph)
    compared = 0
    for step, size in enumerate((1, 1, 2, 9, 4)):
        images = images_of(size, seed=step)
        expected = [reference(image)[1] for image in images.numpy()]
        found = model.compute({"image": images}, losses=False, routing=True).routing
        for i in TINY["expands"]:
            scores = [[reference.novelty(i, k, error) for k, error in enumerate(each[i])] for each in expected]
            assert (np.array(scores) == 0).all() == (step < 3)  # two values or fewer tell nothing
            novelty = found[f"blocks.{i}.adapter.novelty"].detach()
            np.testing.assert_allclose(novelty, scores, rtol=1e-10, atol=1e-10)
            compared += novelty.numel()
        for each in expected:
            reference.learn(each)
        _move(model, images, moved)
    assert compared == 17 * 5


def _move(model: Model, images: Tensor, moved: dict[str, Any]) -> None:
    with torch.no_grad():
        values = model.results({"image": images}, tuple(moved.values()))
        for name, value in zip(moved, values, strict=True):
            model.get_buffer(name).copy_(value)


def test_a_block_grows_only_where_all_of_its_descriptors_are_surprised() -> None:
    model, images = model_of(keeps=6).eval(), images_of(6)
    _move(model, images, find_moved_states(model.graph))
    condition = model.graph.inputs("blocks.2.adapter.growth")["when"]
    record = model.get_buffer("blocks.2.record.errors.value")
    for surprised in range(4):
        (grows,) = model.results({"image": images}, (condition,))
        assert bool(grows) == (surprised == 3)
        record[min(surprised, 2)] += 100


def test_only_descriptors_are_taught_by_their_losses() -> None:
    model = model_of().train()
    losses = model.compute({"image": images_of(3), "label": torch.tensor([0, 1, 2])}).losses
    own = sum(value for name, value in losses.items() if name.startswith("loss.novelty."))
    assert isinstance(own, Tensor) and len(losses) == 3
    own.backward()
    taught = {name for name, weight in model.named_parameters() if weight.grad is not None}
    assert taught == {name for name, _ in model.named_parameters() if ".descriptor." in name}


@pytest.mark.some(1)
@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_a_descriptors_loss_is_that_of_the_newest_and_its_gradient_that_of_all(weight: float) -> None:
    """Block 1 has grown, so that its first descriptor is frozen; all of block 2 is. Compared with numpy."""
    began = modgraph.load(SPEC, **{**TINY, "adapters": [1, 1, 1]}).ir
    graph = replay_edits(began, [Freeze(()), Grow("blocks.1.adapter")])
    plain = weigh_losses(with_losses(graph, find_losses(graph, ["novelty.*"])), {"novelty.1": weight})
    reported = learnt_from(weigh_losses(graph, {"novelty.1": weight}), plain.losses, {})
    images, models = images_of(3), [build(each, seed=1).double().train() for each in (plain, reported)]
    name = "loss.novelty.1"
    assert [*reported.losses] == [name], "a loss from which nothing learns is not reported"
    found = [model.results({"image": images}, (model.graph.losses[name],))[0] for model in models]
    reference = in_numpy(models[0], adapters=[1, 2, 1])
    errors = np.array([reference(image)[1][1] for image in images.numpy()])
    for loss, expected in zip(found, (errors.sum(-1), errors[:, 1]), strict=True):
        np.testing.assert_allclose(loss.detach(), weight * expected, rtol=1e-10)
        loss.mean().backward()
    taught = [{n: each.grad for n, each in model.named_parameters() if each.grad is not None} for model in models]
    assert "blocks.1.descriptor.1.autoencoder.encoder.weight" in taught[1]
    assert all(taught[0][each].equal(gradient) for each, gradient in taught[1].items()), "to the bit"
    assert all(".descriptor.0." in each for each in taught[0].keys() - taught[1].keys()), "which are frozen"


def test_all_descriptors_of_the_first_task_are_reported() -> None:
    graph = modgraph.load(SPEC, **TINY).ir
    assert learnt_from(graph, graph.losses, {}) == graph, "nothing is frozen yet"


# ---------------------------------------------------------------- real images


def digits() -> Tensor:
    from sklearn.datasets import load_digits

    images = load_digits().images[:, None] / 16
    return torch.from_numpy(images[np.random.default_rng(0).permutation(len(images))])


@cache
@torch.enable_grad()  # type: ignore[untyped-decorator]
def described() -> Model:
    """A model whose descriptor learned 800 images, in 60 steps; what it is else is random."""
    sizes = {"depth": 2, "adapters": [1, 1], "expands": [1], "dim": 24, "hidden": 8}
    model, images = modgraph.load(SPEC, **{**TINY, **sizes}).build(seed=0).double().train(), digits()[:800]
    learned = [weight for name, weight in model.named_parameters() if ".descriptor." in name]
    optimizer, moved = torch.optim.SGD(learned, lr=0.05, momentum=0.9), find_moved_states(model.graph)
    for step in range(60):
        batch = images[torch.arange(32 * step, 32 * step + 32) % 800]
        error, *values = model.results({"image": batch}, (model.graph.losses["loss.novelty.1"], *moved.values()))
        optimizer.zero_grad()
        error.mean().backward()
        optimizer.step()
        with torch.no_grad():
            for name, value in zip(moved, values, strict=True):
                model.get_buffer(name).copy_(value)
    return model.eval()


@torch.no_grad()
def fired(images: Tensor, threshold: float, times: int = 500) -> float:
    """In what share of random batches of 32 the model would grow."""
    (novelty,) = described().results({"image": images}, (described().routing_results()["blocks.1.adapter.novelty"],))
    draw = np.random.default_rng(0)
    novelties = [novelty[draw.permutation(len(images))[:32]].mean(0).min().item() for _ in range(times)]
    return float(np.mean(np.array(novelties) > threshold))


@pytest.mark.slow
def test_images_of_the_kind_that_was_learned_do_not_fire_and_shifted_ones_do() -> None:
    images = digits()[800:]
    assert fired(images, threshold=2) == 0
    assert 0 < fired(images, threshold=1) < 0.1
    noise = torch.randn(images.shape, generator=torch.Generator().manual_seed(0), dtype=images.dtype)
    for shifted in (1 - images, (images + 0.5 * noise).clamp(0, 1)):
        assert fired(shifted, threshold=2) == 1


# ---------------------------------------------------------------- bundles


@pytest.mark.slow
def test_without_it_descriptors_are_left_out() -> None:
    model = model_of()
    plain, routing, novelty = exportable(model)
    described = {name for name in model.state_dict() if ".descriptor." in name or ".record." in name}
    assert routing.state_dict().keys() == novelty.state_dict().keys() == model.state_dict().keys()
    assert plain.state_dict().keys() == model.state_dict().keys() - described
    for each in (plain, routing, novelty):
        assert apply_passes(model.graph, build_pipeline_behind(each.graph)) == each.graph
    image = images_of(2).float()
    torch.testing.assert_close(plain(image), model.float().eval()(image))
    for each in (WithoutNovelty(), NoveltyAsOutputs()):
        assert ensures(each, after := each(plain.graph)) and after == plain.graph
    (one,) = exportable(model_of(expands=[]))
    graph = model_of(expands=[]).graph
    assert (one.graph, one.computed) == (apply_passes(graph, BUNDLE), apply_passes(graph, INFERENCE))


def test_what_records_no_novelty_is_reported(tmp_path: Path) -> None:
    with pytest.raises(modgraph.ModgraphError, match="records a novelty"):
        modgraph.export(model_of(expands=[]).float(), tmp_path / "m.onnx", novelty=True)


# ---------------------------------------------------------------- growth, and what it starts from


def test_old_outputs_return_where_the_new_column_counts_nothing() -> None:
    old, images = model_of().eval(), images_of(3)
    new = build(Grow("blocks.2.adapter", 1).apply(old.graph)).double().eval()
    with torch.no_grad():
        for name, before in old.state_dict().items():
            new.state_dict()[name][tuple(map(slice, before.shape))] = before
        assert not torch.equal(new(images), old(images))
        new.get_parameter("blocks.2.mixture.gates.gating.column.bias")[-1] = -torch.inf
    torch.testing.assert_close(new(images), old(images), rtol=0, atol=1e-12)


@pytest.mark.some(1)
@pytest.mark.parametrize("settings", [{}, {"variant": "lora"}, {"variant": "convpass"}, {"gating": "average"}])
def test_timms_weights_fill_the_backbone_and_adapters_start_as_nothing(settings: dict[str, Any]) -> None:
    graph = modgraph.load(SPEC, **settings).ir
    found = read_map(TIMM, graph)
    assert found.origins.keys() | found.random == {weight.name for weight in weights_of(graph)}
    added = (".adapter.", ".descriptor.", ".record.", ".mixture.")
    assert all(any(word in name for word in added) for name in found.random - {"head.weight", "head.bias"})
    shared = {name: PARAMETERS[name] for name in ("size", "patch", "dim", "depth", "heads", "classes")}
    model = modgraph.load(SPEC, **{**shared, **settings, "adapters": [1, 2, 1], "expands": [1]}).build()
    tensors = timm_tensors()
    origins = read_map(TIMM, model.graph).origins
    weights = {name: tensors[origin.tensor] for name, origin in origins.items()}
    model.load_state_dict({name: each.reshape(model.state_dict()[name].shape) for name, each in weights.items()}, False)
    image = torch.randn(2, 3, SIZE, SIZE)
    torch.testing.assert_close(model(image), timm_forward(tensors, image), atol=1e-4, rtol=1e-4)


# ---------------------------------------------------------------- trained


@pytest.mark.slow
def test_it_grows_where_a_task_is_shifted_and_reports_it_when_it_is_exported(tmp_path: Path) -> None:
    """The recipe of the digits, made small: five kinds, two of them inverted, and another two inverted."""
    recipe = yaml.safe_load(Path("specs/sema_digits.yaml").read_text())
    del recipe["start"]
    sizes = {"dim": 16, "depth": 2, "heads": 2, "width": 2, "adapters": [1, 1], "expands": [1], "hidden": 4}
    recipe["model"] |= {**sizes, "classes": 3, "size": 8, "patch": 4}
    tasks = {"first": [0, 1, 2], "new": [0, 1], "known": [3, 4]}
    recipe["data"]["tasks"] = {
        name: {"classes": each, "shift": "none" if name == "first" else "inverted"} for name, each in tasks.items()
    }
    recipe["data"]["of"] = {"name": "digits", "limit": 700}
    phases = recipe["train"]["algorithm"]["phases"]
    phases["functional"]["epochs"], phases["descriptors"]["epochs"] = 1, 8
    (tmp_path / "r.yaml").write_text(yaml.safe_dump(recipe, sort_keys=False))
    run, bundle = tmp_path / "run", tmp_path / "m.onnx"
    assert main(["train", SPEC, "--recipe", str(tmp_path / "r.yaml"), "--out", str(run)]) == 0
    grown = [json.loads(line) for line in (run / "growth.jsonl").read_text().splitlines()]
    assert [(each["task"], each["pool"]) for each in grown if "pool" in each] == [("new", "blocks.1.adapter")]
    assert main(["export", str(run), "-o", str(bundle), "--novelty"]) == 0
    assert main(["diff", str(run), str(bundle)]) == main(["eval", str(run), "--bundle", str(bundle)]) == 0
    images = digits()[:200].float().numpy()
    name = "novelty.blocks.1.adapter"
    known, unknown = (Bundle(bundle).run({"image": each})[name].mean(0) for each in (images, 1 - images))
    assert known[0] < 2 < known[1] and unknown[1] < 2 < unknown[0]
    spec = modgraph.load(SPEC, **{**recipe["model"], "classes": 7, "adapters": [1, 2]})
    assert compute_cost(read_architecture(str(run), {}).graph).parameters == spec.cost().parameters
