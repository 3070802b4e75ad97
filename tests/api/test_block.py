"""A block or a router of a spec as a torch module, behind models that are written in torch."""

from __future__ import annotations

import copy
import io
import pickle
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

import modgraph
from modgraph.backends.torch.instance import Instance

PARTS = """
block swiglu(dim, factor=2) {
  input x: float[tokens, dim]
  weight scale: float[dim] = ones
  gate = x -> linear(factor * dim, bias=false) -> silu
  up = x -> linear(factor * dim, bias=false)
  y = (gate * up -> linear(dim, bias=false)) * scale
  output y
}

router mine() for p {
  input x: float[tokens, width]
  gates = x -> linear(p) -> softmax
  record gates
  y = x -> p by gates
  output y
}

block moe(dim, experts=4) {
  input x: float[tokens, dim]
  pool expert[experts] = linear(dim) -> relu
  router gate = mine
  y = x -> expert by gate
  loss balance = 0.5 * importance(gate)
  output y
}

block double() {
  input x: float[tokens, width]
  y = x + x
  output y
}

block pair() {
  input a: float[width]
  input b: float[n]
  s = a -> linear(4)
  t = b -> linear(2)
  output s
  output t
}
"""


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("parts") / "parts.mod"
    path.write_text(PARTS)
    return path


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def test_a_block_computes_what_its_text_says(parts: Path) -> None:
    block = modgraph.block(parts, "swiglu", dim=8)
    w, x = block.state_dict(), random(2, 5, 8)
    assert [*w] == ["scale", "gate.linear.weight", "up.linear.weight", "y.linear.weight"], "the names of the spec"
    hidden = F.silu(x @ w["gate.linear.weight"].T) * (x @ w["up.linear.weight"].T)
    torch.testing.assert_close(block(x), (hidden @ w["y.linear.weight"].T) * w["scale"])
    assert block(random(3, 9, 8)).shape == (3, 9, 8), "any number of tokens"


def test_weights_load_from_a_model_that_uses_the_block(parts: Path) -> None:
    (parts.parent / "net.mod").write_text(
        'import swiglu from "parts.mod"\n\nmodel net {\n  input x: float[5, 8]\n'
        "  y = x -> swiglu(dim=8)\n  output y\n}\n"
    )
    model = modgraph.load(parts.parent / "net.mod").build(seed=3)
    block = modgraph.block(parts, "swiglu", dim=8, seed=1)
    own = {name.removeprefix("y.swiglu."): value for name, value in model.state_dict().items()}
    block.load_state_dict(own)
    x = random(2, 5, 8)
    torch.testing.assert_close(block(x), model(x))


def test_blocks_start_with_different_weights_unless_a_seed_is_given(parts: Path) -> None:
    def weights(count: int, **seed: int) -> list[Tensor]:
        blocks = nn.ModuleList([modgraph.block(parts, "swiglu", dim=8, **seed) for _ in range(count)])
        return [blocks.state_dict()[f"{at}.y.linear.weight"] for at in range(count)]

    torch.manual_seed(7)
    first = weights(3)
    assert all(not torch.equal(first[at], first[at - 1]) for at in range(3)), "no copies"
    torch.manual_seed(7)
    assert all(map(torch.equal, first, weights(3))), "torch.manual_seed makes them reproducible"
    given = weights(2, seed=5)
    assert torch.equal(*given), "a seed fixes the weights"
    assert not torch.equal(given[0], weights(1, seed=6)[0])


def test_losses_and_records_of_a_block_are_reachable_by_name(parts: Path) -> None:
    block, x = modgraph.block(parts, "moe", dim=8), random(2, 5, 8)
    assert block.losses == {}
    y = block(x)
    assert [*block.losses] == ["loss.balance"]
    (y.square().mean() + block.loss).backward()
    assert all(weight.grad is not None for weight in block.parameters()), "gradients reach every weight"
    gates = block.compute(x).routing["expert.gates"]
    gate = block.state_dict()
    expected = F.softmax(x @ gate["gate.gates.linear.weight"].T + gate["gate.gates.linear.bias"], -1)
    torch.testing.assert_close(gates, expected)


def test_a_router_is_built_with_its_pool(parts: Path) -> None:
    router = modgraph.block(parts, "mine", p="linear(8) -> relu", modules=3, x="float[tokens, 8]")
    x, w = random(2, 5, 8), router.state_dict()
    gates = F.softmax(x @ w["mine.gates.linear.weight"].T + w["mine.gates.linear.bias"], -1)
    each = [F.relu(x @ w[f"p.{at}.linear.weight"].T + w[f"p.{at}.linear.bias"]) for at in range(3)]
    torch.testing.assert_close(router(x), sum(gates[..., at, None] * y for at, y in enumerate(each)))


def test_a_router_of_the_vocabulary_needs_no_file() -> None:
    router = modgraph.block(None, "agreement", iterations=2, p="linear(6)", modules=3, x="float[tokens, 4]")
    assert router(random(2, 5, 4)).shape == (2, 3, 6), "[batch, modules, dim]"


def test_sizes_are_inferred_from_examples(parts: Path) -> None:
    pair = modgraph.block(parts, "pair", a=torch.zeros(1, 3), b=torch.zeros(1, 6))
    assert [each.shape for each in pair(random(2, 3), random(2, 6))] == [(2, 4), (2, 2)], "outputs in order"
    tokens = modgraph.block(parts, "swiglu", dim=8, x=torch.zeros(1, 5, 8))
    assert tokens(random(1, 7, 8)).shape == (1, 7, 8), "what may have any length keeps that"


class Backbone(nn.Module):
    """A small convolutional net, as others write them, with a mixture of experts of a spec behind it."""

    def __init__(self, mixture: nn.Module) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, stride=2)
        self.mixture = mixture
        self.head = nn.Linear(8, 10)

    def forward(self, image: Tensor) -> Tensor:
        tokens = self.stem(image).flatten(2).transpose(1, 2)
        return self.head((tokens + self.mixture(tokens)).mean(1))


def test_a_block_trains_behind_a_backbone_in_torch(parts: Path) -> None:
    torch.manual_seed(0)
    model = Backbone(modgraph.block(parts, "moe", dim=8))
    images, labels = random(32, 1, 8, 8), torch.arange(32) % 10
    assert "mixture.expert.0.linear.weight" in model.state_dict(), "names below the module's own"
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels) + model.mixture.loss  # type: ignore[operator]
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0], f"{losses[0]:.3f} → {losses[-1]:.3f}"


def test_a_block_stands_in_a_hugging_face_model(parts: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=8, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, vocab_size=11
    )
    model = transformers.LlamaForCausalLM(config)
    model.model.layers[0].mlp = modgraph.block(parts, "swiglu", dim=8)
    model(input_ids=torch.arange(6)[None], labels=torch.arange(6)[None]).loss.backward()
    assert all(each.grad is not None for each in model.model.layers[0].mlp.parameters())


def test_a_block_is_duplicated_moved_and_switched_as_modules_are(parts: Path) -> None:
    block, x = modgraph.block(parts, "moe", dim=8), random(2, 5, 8)
    block(x)
    other = copy.deepcopy(block)
    torch.testing.assert_close(other(x), block(x))
    other(x).sum().backward()
    assert all(weight.grad is None for weight in block.parameters()), "a copy has weights of its own"
    assert other.double()(x.double()).dtype == torch.float64
    with torch.no_grad():
        for weight in block.parameters():
            weight.zero_()
    assert block(x).abs().max() == 0, "weights that are set are those that compute"
    assert not block.eval().training
    assert not any(each.training for each in block.modules())


def test_models_with_blocks_are_pickled_and_saved_whole(parts: Path) -> None:
    block, x = modgraph.block(parts, "moe", dim=8), random(2, 5, 8)
    model = modgraph.load(Path(__file__).parents[2] / "specs/smn.mod").build()
    other, same = pickle.loads(pickle.dumps((block, model)))  # as torch.multiprocessing sends them
    torch.testing.assert_close(other(x), block(x))
    assert all(map(torch.equal, model.state_dict().values(), same.state_dict().values())), "all weights"
    file = io.BytesIO()
    torch.save(Backbone(block), file)
    file.seek(0)
    saved = torch.load(file, weights_only=False).mixture
    with torch.no_grad():
        for weight in saved.parameters():
            weight.zero_()
    assert saved(x).abs().max() == 0, "weights that are set are those that compute"
    rounds = [type(each) for each in same.modules() if isinstance(each, Instance) and each.call.kind == "round"]
    assert len(set(rounds)) < len(rounds), "equal rounds have one class, as torch.compile needs it"


def test_a_block_prints_itself_like_its_spec(parts: Path) -> None:
    text = str(modgraph.block(parts, "moe", dim=8))
    assert text.startswith("Moe("), text
    assert "4 x Expert" in text, text
    assert modgraph.block(parts, "moe", dim=8).program.cost().parameters == sum(
        each.numel() for each in modgraph.block(parts, "moe", dim=8).parameters()
    )


SOURCES: dict[str, dict[str, Any]] = {
    "swiglu": {"dim": 8},
    "moe": {"dim": 8},
    "pair": {"a": "float[3]", "b": "float[6]"},
    "mine": {"p": "linear(8)", "modules": 3, "x": "float[tokens, 8]"},
    "double": {"x": "float[tokens, 8]"},
}


@pytest.mark.parametrize("name", SOURCES)
def test_the_source_of_a_block_takes_its_weights(name: str, parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = modgraph.block(parts, name, **SOURCES[name])
    module = ModuleType("written")
    monkeypatch.setitem(sys.modules, "written", module)  # dataclasses look for it
    exec(block.pytorch_source(), vars(module))
    other = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == "written"][-1]()
    other.load_state_dict(block.state_dict())
    inputs = (random(2, 3), random(2, 6)) if name == "pair" else (random(2, 5, 8),)
    expected, found = block(*inputs), other(*inputs)
    if block.losses:
        found, losses = found
        torch.testing.assert_close(losses, block.losses)
    torch.testing.assert_close(found, expected)


WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "an unknown block": ("swigl", {}, 'unknown block or router "swigl".*did you mean "swiglu"'),
    "an unknown parameter": ("swiglu", {"dimm": 8}, 'unknown parameter or input "dimm".*did you mean "dim"'),
    "a missing parameter": ("swiglu", {}, "needs values for its parameters: dim"),
    "open sizes": ("pair", {"a": "float[3]"}, 'needs the sizes of b.*give the type, b="float'),
    "a router without a pool": ("mine", {}, 'needs modules for its pool "p".*p="linear'),
    "a type that does not fit": (
        "swiglu",
        {"dim": 8, "x": "float[tokens, 7]"},
        r"must be float\[tokens, 8\], not float\[tokens, 7\]",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_built_is_explained(what: str, parts: Path) -> None:
    name, given, expected = WRONG[what]
    with pytest.raises(modgraph.ModgraphError, match=f"(?s){expected}"):
        modgraph.block(parts, name, **given)


def test_a_model_is_no_block(tmp_path: Path) -> None:
    (tmp_path / "net.mod").write_text("model net {\n  input x: float[4]\n  y = x -> relu\n  output y\n}\n")
    with pytest.raises(modgraph.ModgraphError, match=r"build the model: modgraph.load"):
        modgraph.block(tmp_path / "net.mod", "net")


def test_a_block_with_a_family_of_outputs_gives_them_in_order(tmp_path: Path) -> None:
    (tmp_path / "mt_rmn.mod").write_text((Path(__file__).parents[2] / "specs/parts/mt_rmn.mod").read_text())
    (tmp_path / "net.mod").write_text(
        'import mt_rmn from "mt_rmn.mod"\n\nmodel net {\n  input x: float[time, 6]\n'
        '  v = x -> mt_rmn(tasks=["a", "b"])\n  for k in ["a", "b"] {\n    output v[k]\n  }\n}\n'
    )
    model = modgraph.load(tmp_path / "net.mod").build(seed=2).eval()
    block = modgraph.block(tmp_path / "mt_rmn.mod", "mt_rmn", tasks=["a", "b"], x="float[time, 6]").eval()
    block.load_state_dict({name.removeprefix("v.mt_rmn."): each for name, each in model.state_dict().items()})
    x = random(2, 4, 6)
    expected = model(x)
    for own, name in zip(block(x), ("v.a", "v.b"), strict=True):
        torch.testing.assert_close(own, expected[name])
    assert [*block.losses] == ["loss.encoder", "loss.decoders"]


def test_a_block_of_ids_takes_an_example_too(tmp_path: Path) -> None:
    text = "block embed(size, dim) {\n  input words: token[time, size]\n  y = words -> embedding(dim)\n  output y\n}\n"
    (tmp_path / "embed.mod").write_text(text)
    for given in ({}, {"words": torch.arange(6)[None]}, {"words": "token[time, 11]"}):
        block = modgraph.block(tmp_path / "embed.mod", "embed", size=11, dim=4, **given)
        assert block(torch.arange(9)[None]).shape == (1, 9, 4)
