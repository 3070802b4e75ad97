"""Compiled models: names, starts, sharing, and how they behave as torch modules."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch

import modgraph
from modgraph.backends.torch.step_memory import LiveBytes
from modgraph.ir import weights_of
from tests.examples import SEQUENCE, TRANSFORMER

SPECS = sorted(Path("specs").glob("*.mod"))


def transformer() -> modgraph.Program:
    return modgraph.loads(TRANSFORMER)


@pytest.mark.some(4)
@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_a_spec_builds_with_the_weights_it_declares(path: Path) -> None:
    program = modgraph.load(path)
    model = program.build(seed=1)
    declared = {weight.name: weight.shape for weight in weights_of(program.ir)}
    assert declared == {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    assert sum(p.numel() for p in model.parameters()) == program.cost().parameters


def test_weights_are_a_function_of_seed_and_name() -> None:
    first, again, other = (transformer().build(seed=seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["logits.linear.weight"], other["logits.linear.weight"])


def test_a_new_layer_leaves_other_weights_as_they_were() -> None:
    short = transformer().build().state_dict()
    longer = modgraph.loads(TRANSFORMER, depth=4).build().state_dict()
    assert set(short) < set(longer)
    assert all(torch.equal(tensor, longer[name]) for name, tensor in short.items())


def test_building_does_not_touch_the_global_random_state() -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    transformer().build()
    assert torch.equal(torch.rand(3), expected)


def test_uniform_initialisers_keep_the_kaiming_bound() -> None:
    weight = modgraph.load("specs/smn.mod").build().get_parameter("agree.weight")
    bound = 1 / 64**0.5
    assert weight.abs().max() <= bound
    assert weight.abs().max() > 0.99 * bound
    assert abs(weight.mean()) < 0.01 * bound


def test_a_model_takes_inputs_by_place_or_name_and_says_what_is_missing() -> None:
    model = transformer().build().eval()
    image = torch.randn(2, 3, 8, 8)
    by_name = model(image=image)
    assert isinstance(by_name, torch.Tensor)
    assert torch.equal(model(image), by_name)
    with pytest.raises(TypeError, match='needs the input "image"'):
        model()
    with pytest.raises(TypeError, match="takes 1 inputs"):
        model(image, image)
    with pytest.raises(TypeError, match='no input "picture"'):
        model(image, picture=image)


def test_several_outputs_come_by_name() -> None:
    model = modgraph.loads("model m() { input x: float[4] a, b = x -> split(2) output a output b }").build()
    outputs = model(torch.arange(8.0).reshape(2, 4))
    assert isinstance(outputs, dict)
    assert outputs["b"].tolist() == [[2, 3], [6, 7]]


def test_losses_are_numbers_and_give_every_weight_a_gradient() -> None:
    model = transformer().build()
    computed = model.compute({"image": torch.randn(4, 3, 8, 8), "label": torch.tensor([0, 1, 2, 3])}, routing=True)
    assert set(computed.losses) == {"loss.cross_entropy", "loss.importance"}
    assert computed.routing["blocks.1.expert.gates"].shape == (4, 5, 3)
    computed.loss.backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


def test_hooks_deepcopy_and_optimizers_work_as_on_any_module() -> None:
    model = modgraph.load("specs/smn.mod").build()
    seen: list[torch.Size] = []
    handle = model.get_submodule("specialist.shared.modulated_linear").register_forward_hook(
        lambda module, inputs, output: seen.append(output.shape)
    )
    image = torch.randn(2, 1, 28, 28)
    before = model(image)
    assert seen and seen[0][-1] == 384
    handle.remove()
    twin = copy.deepcopy(model)
    optimizer = torch.optim.SGD(twin.parameters(), lr=1.0)
    twin(image).sum().backward()
    optimizer.step()
    assert torch.equal(model(image), before)
    assert not torch.allclose(twin(image), before)


def test_float64_and_state_dicts_carry_over() -> None:
    model, other = transformer().build(seed=0).eval(), transformer().build(seed=5).eval()
    other.load_state_dict(model.state_dict())
    image = torch.randn(2, 3, 8, 8)
    assert torch.equal(model(image), other(image))
    precise = copy.deepcopy(model).double()(image.double())
    torch.testing.assert_close(precise.float(), model(image), atol=1e-5, rtol=0)


@pytest.mark.slow
def test_torch_compile_gives_the_same() -> None:
    model = modgraph.load("specs/smn.mod").build().eval()
    image = torch.randn(2, 1, 28, 28)
    torch.testing.assert_close(torch.compile(model)(image), model(image), atol=1e-5, rtol=0)


def test_lowerings_agree_within_a_whole_model() -> None:
    inputs = {"image": torch.randn(3, 3, 8, 8), "label": torch.tensor([0, 4, 2])}
    gradients = []
    for lowering in ("dense", "message_passing"):
        model = transformer().build(lowering=lowering).eval().double()
        computed = model.compute({name: x.double() if x.is_floating_point() else x for name, x in inputs.items()})
        computed.loss.backward()
        gradients.append({name: p.grad for name, p in model.named_parameters()})
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], atol=1e-10, rtol=0)


def test_an_unknown_lowering_is_refused() -> None:
    from modgraph.passes import NoSuchLowering

    with pytest.raises(NoSuchLowering, match=r"by route: .*expert: dense, message_passing"):
        transformer().build(lowering="sparse")


def test_padding_changes_nothing() -> None:
    model = modgraph.loads(SEQUENCE).build().eval()
    words = torch.randint(20, (2, 5), generator=torch.Generator().manual_seed(0))
    padded = torch.cat((words, torch.full((2, 3), 7)), dim=1)
    torch.testing.assert_close(model(words), model(padded, torch.tensor([5, 5])), atol=1e-6, rtol=0)
    mixed = model(words, time_length=torch.tensor([5, 2]))
    torch.testing.assert_close(mixed[1:], model(words[1:, :2]), atol=1e-6, rtol=0)


def test_arithmetic_broadcasts_within_an_example_never_across_the_batch() -> None:
    text = "model m() { input a: float[3] input b: float[2, 3] y = a + b output y }"
    a, b = torch.randn(2, 3), torch.randn(2, 2, 3)
    assert torch.equal(modgraph.loads(text).build()(a, b), a[:, None] + b)


def test_a_module_declared_once_is_one_set_of_weights() -> None:
    text = """model m() { input a: float[4] input b: float[4]
      module enc = linear(3) -> tanh
      x = a -> enc  y = b -> enc  z = x - y  output z }"""
    program = modgraph.loads(text)
    model = program.build()
    assert set(model.state_dict()) == {"enc.linear.weight", "enc.linear.bias"}
    same = torch.randn(2, 4)
    assert not model(same, same).any()
    assert program.cost().parameters == 15


def test_lowerings_agree_in_single_precision_at_the_size_of_the_spec() -> None:
    image = torch.rand(4, 1, 28, 28)
    dense, reference = (
        modgraph.load("specs/smn.mod").build(lowering=lowering) for lowering in ("dense", "message_passing")
    )
    ours, theirs = dense(image), reference(image)
    assert (ours - theirs).abs().max() <= 1e-5 * theirs.abs().max()


def test_a_value_is_dropped_after_its_last_reader() -> None:
    model = modgraph.loads("model m() { input x: float[1000000] y = x -> exp -> tanh -> sin -> cos output y }").build()
    x = torch.rand(1, 1_000_000)
    with torch.no_grad(), LiveBytes([x]) as live:
        model.eval()(x)
    assert live.most <= 3 * x.nbytes, "an op's operand and result lie beside the input, and no earlier values"
