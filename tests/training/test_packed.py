"""Tensors of published checkpoints that hold weights otherwise: axes merged into one, numbers of 4 bits."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from modgraph.diagnostics import ModgraphError
from modgraph.training.start.mxfp4 import unpack
from modgraph.training.start.tensor_files import open_tensors
from tests.training.test_published import begun, save_shards

# ---------------------------------------------------------------- axes that are one in the file

GROUPED = """model m() {
  input x: float[6]
  weight w: float[group=2, member=3, 6] = normal(1)
  output y = (w, x) -> contract
}"""


@pytest.mark.parametrize(
    ("axes", "order", "merged"),
    [
        ("(group member) in -> group member in", (0, 1, 2), 0),
        ("in (group member) -> group member in", (2, 0, 1), 1),
        ("(in group) member -> group member in", (2, 0, 1), 0),
        ("(member in) group -> group member in", (1, 2, 0), 0),
    ],
)
def test_a_map_divides_an_axis_that_holds_several_of_the_weight(
    axes: str, order: tuple[int, ...], merged: int, tmp_path: Path
) -> None:
    weight = torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(0))
    there = weight.permute(order).flatten(merged, merged + 1).contiguous()
    save_file({"theirs": there}, tmp_path / "model.safetensors")
    model, inherited = begun(tmp_path, f"weights: {{theirs: {{to: w, axes: '{axes}'}}}}", GROUPED)
    assert model.state_dict()["w"].equal(weight)
    assert inherited.left == inherited.fresh == ()


def test_an_axis_of_another_length_does_not_fit(tmp_path: Path) -> None:
    save_file({"theirs": torch.ones(8, 6)}, tmp_path / "model.safetensors")
    rule = "{to: w, axes: '(group member) in -> group member in'}"
    with pytest.raises(ModgraphError, match=r"w is \[2, 3, 6\] here and theirs is \[8, 6\] there") as caught:
        begun(tmp_path, f"weights: {{theirs: {rule}}}", GROUPED)
    assert [each.code for each in caught.value.diagnostics] == ["MG516"]


# ---------------------------------------------------------------- numbers of 4 bits

MIXTURE = """model m() {
  input x: float[64]
  pool expert[2] = linear(3, bias=false)
  output y = x -> expert
}"""
TO_MIXTURE = "weights: {experts.w: {to: expert.#.linear.weight, axes: '# in out -> out in'}}"
SIZES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def packed() -> dict[str, Tensor]:
    """A weight [2, 64, 3] as blocks and scales."""
    generator = torch.Generator().manual_seed(0)
    blocks = torch.randint(256, (2, 3, 2, 16), dtype=torch.uint8, generator=generator)
    scales = torch.randint(110, 140, (2, 3, 2), dtype=torch.uint8, generator=generator)
    return {"experts.w_blocks": blocks, "experts.w_scales": scales}


def read_number(tensors: dict[str, Tensor], expert: int, out: int, at: int) -> float:
    """One number, by the bits: a sign and one of eight sizes, times a power of two."""
    block, place = divmod(at, 32)
    byte = int(tensors["experts.w_blocks"][expert, out, block, place // 2])
    bits = byte >> 4 if place % 2 else byte & 15
    size = SIZES[bits & 7] * (-1 if bits & 8 else 1)
    return size * 2.0 ** (int(tensors["experts.w_scales"][expert, out, block]) - 127)


@pytest.mark.parametrize("shards", [True, False])
def test_blocks_and_their_scales_are_read_as_numbers(tmp_path: Path, shards: bool) -> None:
    tensors = packed()
    if shards:
        save_shards(tensors, tmp_path)  # blocks and scales lie in different files
    else:
        torch.save(tensors, tmp_path / "model.pt")
    model, inherited = begun(tmp_path if shards else tmp_path / "model.pt", TO_MIXTURE, MIXTURE)
    assert inherited.left == inherited.fresh == ()
    for expert in range(2):
        found = model.state_dict()[f"expert.{expert}.linear.weight"]
        expected = [[read_number(tensors, expert, out, at) for at in range(64)] for out in range(3)]
        assert found.equal(torch.tensor(expected))


@pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed")
def test_they_are_those_of_transformers() -> None:
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    blocks, scales = packed().values()
    assert unpack(blocks, scales).equal(convert_moe_packed_tensors(blocks, scales))


def test_a_header_says_what_the_numbers_are_without_reading_them(tmp_path: Path) -> None:
    save_file(packed(), tmp_path / "model.safetensors")
    header = open_tensors(str(tmp_path)).headers["experts.w"]
    assert (header.shape, header.type, header.bytes) == ((2, 64, 3), "bfloat16", 2 * 2 * 64 * 3)
    assert open_tensors(str(tmp_path)).keys() == {"experts.w"}


WRONG = {
    "no scales": {"experts.w_blocks": packed()["experts.w_blocks"]},
    "scales of another shape": {**packed(), "experts.w_scales": packed()["experts.w_scales"][:1].clone()},
    "blocks of another length": {**packed(), "experts.w_blocks": packed()["experts.w_blocks"][..., :8].clone()},
    "no bytes": {**packed(), "experts.w_scales": packed()["experts.w_scales"].float()},
}


@pytest.mark.parametrize("kind", WRONG)
def test_blocks_without_scales_that_fit_are_no_weight(kind: str, tmp_path: Path) -> None:
    save_file(WRONG[kind], tmp_path / "model.safetensors")
    with pytest.raises(ModgraphError, match=r"it lacks experts\.w\b"):
        begun(tmp_path, TO_MIXTURE, MIXTURE)
