"""Attention that a spec writes out becomes one op, and computes what is written, whatever the variant."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from modgraph.backends.torch import Model
from modgraph.ir import Graph
from modgraph.passes import TRAINING, Fuse, list_attention, optimise
from modgraph.program import loads

LENGTHS = (40, 0, 23)
HEAD = """input x: float[time, 12] input b: float[time, key=time] input s: float[key=time]
  keys = x -> rename(time="key")
  at = (x -> positions(axis="time"), keys) -> expand("key", at=-1)
  of = (keys -> positions(axis="key"), x) -> expand("time")
  back = at - of
  q = x -> linear(12) -> unmerge([2, 6], into=["head", ""])
  k = keys -> linear(12) -> unmerge([2, 6], into=["head", ""])
  v = keys -> linear(8) -> unmerge([2, 4], into=["head", ""])"""
WINDOW = """near = ((((back >= 0) * (back < 20), of < 2) -> maximum) * (back >= 0), q) -> expand("head", at=-2)
  scores = ((q, k) -> contract) / sqrt(6)
  gates = (scores, near) -> masked_softmax(axis="key")
  y = v by gates over key
  output y"""


class Variant(NamedTuple):
    """How attention is written."""

    causal: bool = True
    window: int | None = 20
    first: int = 0
    mask: str = ""  # from the data: of "keys" or of "pairs"
    capped: bool = False
    bias: str = ""  # by the "distance", or a "given" one
    shared: bool = False  # keys and values have no heads
    added: bool = False  # a second product of queries and keys
    swapped: bool = False  # the operands of products, and the axes of scores
    sink: bool = False

    def write(self) -> str:
        lines = [HEAD, "k = keys -> linear(6) v = keys -> linear(4)" if self.shared else ""]
        lines.append(f"scores = ({'k, q' if self.swapped else 'q, k'}) -> contract")
        lines += ['scores = scores -> transpose("time", "head", "key")'] * self.swapped
        two = 'x -> linear(6) -> unmerge([2, 3], into=["head", ""]), keys -> linear(3)'
        lines += [f"scores = scores + 0.5 * (({two}) -> contract)"] * self.added
        lines.append("scores = 0.4 * scores")
        lines += ["scores = 3 * tanh(scores / 3)"] * self.capped
        axis = '((..., q) -> expand("head", at=-2))'
        if self.bias == "distance":
            lines.append(f"scores = scores - {axis.replace('...', '0.1 * back')} + 2")
        elif self.bias:
            lines.append(f"scores = (scores + {axis.replace('...', 'b')}) / 2 - {axis.replace('...', 'b * at')}")
        near = ["(back >= 0)"] * self.causal + [f"(back < {self.window}) * (back > -9)"] * (self.window is not None)
        band = [" * ".join(near)] if near else []
        band = [f"(({each}, of < {self.first}) -> maximum)" if self.first else each for each in band]
        band += {"": [], "keys": ['((s > 0, x) -> expand("time"))'], "pairs": ["(b > 0)"]}[self.mask]
        band += ["(of >= 0)"] * (self.sink and not band)
        lines += [f"near = {axis.replace('...', ' * '.join(band))}" if self.shared else f"near = {' * '.join(band)}"]
        among = f"(scores, near{', q -> sum(axis=-1)' if self.sink else ''}) -> masked_"
        lines = lines if band else lines[:-1]
        lines.append(f'gates = {among if band else "scores -> "}softmax(axis="key")')
        lines.append('y = (v, gates) -> contract(axis="key")' if self.swapped else "y = v by gates over key")
        return f"model m() {{ {' '.join(lines)} output y }}"


def fuse(text: str) -> Graph:
    return optimise(loads(text).ir, TRAINING).graph


def compute(graph: Graph, lowering: str | None, weights: Model | None = None) -> tuple[Model, Tensor, list[Tensor]]:
    """A model by passes with a lowering of attention: its output without padding, and the gradients of all weights."""
    passes = tuple(Fuse(lowering) if each.name == "fuse" else each for each in TRAINING)
    model = Model(graph, optimise(graph, passes)).double()
    source = torch.Generator().manual_seed(1)
    for each in model.parameters():
        torch.nn.init.normal_(each, std=0.5, generator=source)
    batch: dict[str, Tensor] = {"time_length": torch.tensor(LENGTHS)}
    for name, type_ in graph.input_types.items():
        if type_.dtype == "float":
            shape = [len(LENGTHS), *(axis.size or max(LENGTHS) for axis in type_.shape)]
            batch[name] = torch.randn(shape, generator=source, dtype=torch.float64)
    y = model.compute(batch).outputs["y"]
    place = graph.type_of(graph.outputs["y"]).position("time") or 0
    y = torch.cat([row.movedim(place, 0)[:length].flatten() for row, length in zip(y, LENGTHS, strict=True)])
    (y * torch.randn(y.shape, generator=source, dtype=torch.float64)).sum().backward()  # type: ignore[no-untyped-call]
    return model, y, [each.grad for each in model.parameters() if each.grad is not None]


VARIANTS = st.builds(
    Variant, st.booleans(), st.sampled_from([None, 3, 20]), st.sampled_from([0, 4]),
    st.sampled_from(["", "keys", "pairs"]), st.booleans(), st.sampled_from(["", "distance", "given"]),
    st.booleans(), st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip


@given(VARIANTS)
def test_attention_as_one_op_computes_what_is_written(variant: Variant) -> None:
    graph = loads(variant.write()).ir
    (choice,) = list_attention(graph).values()
    unknown = variant.capped or variant.sink
    expected = "windows" if variant.window is not None else "dense" if unknown else "fused"
    expected = "dense" if variant.sink and variant.bias == "distance" else expected  # it adds a number
    assert choice.lowering == expected, f"{choice.reason}, of {variant}"
    _, y, gradients = compute(graph, None)
    _, dense, expected_gradients = compute(graph, "dense")
    torch.testing.assert_close(y, dense)
    torch.testing.assert_close(gradients, expected_gradients)


def test_a_window_with_first_keys_becomes_one_op_and_its_comparisons_go() -> None:
    text = " ".join(str(fuse(f"model m() {{ {HEAD} {WINDOW} }}")).split())
    assert 'dot_product_attention(equation="Nhd,Mhd,Mhe->Nhe", scale=0.4082482904638631, band=[' in text
    assert 'band=["-19..0", "..0 and key ..1"], blocks=true) (q.unmerge, k.unmerge, v.unmerge)' in text
    assert "softmax" not in text and "positions" not in text, "something is left of scores or mask"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (f"{WINDOW} output gates", '"gates" reads its weights'),
        (f"{WINDOW} output scores", '"scores" reads its scores'),
        (WINDOW.replace("y = v by gates", "y = v by (gates -> dropout(0.5))"), '"dropout" changes the weights'),
        (WINDOW.replace("/ sqrt(6)", "-> relu"), '"relu" changes the scores'),
        (WINDOW.replace("near) -> masked_", "scores -> top_k(3)) -> masked_"), '"gates.top_k" reads its scores'),
        (WINDOW.replace("/ sqrt(6)", "/ sqrt(6) scores = 5 * tanh(scores + 0.1)"), "more inside"),
        (f"{WINDOW} z = k by gates over key output z", "several sums share its scores"),
        (WINDOW.replace("near) -> masked_", "back >= 0, q -> sum(axis=-1)) -> masked_"), "kernel has no sink"),
    ],
)
def test_what_else_reads_or_changes_scores_and_weights_is_the_reason_for_none(lines: str, reason: str) -> None:
    graph = loads(f"model m() {{ {HEAD} {lines} }}").ir
    choices = list_attention(graph)
    assert {each.lowering for each in choices.values()} == {"dense"}, choices
    assert reason in next(iter(choices.values())).reason
    assert "dot_product" not in str(fuse(f"model m() {{ {HEAD} {lines} }}"))
