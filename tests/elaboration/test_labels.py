"""Records are called after what the author wrote: the place and the pool, and no more than tells them apart."""

from __future__ import annotations

import pytest

from modgraph.ir import from_json, to_json
from modgraph.ir.text.parse import parse_text
from modgraph.passes import INFERENCE, apply_passes
from modgraph.program import loads

HEAD = "input x: float[5, 4] pool p[2] = linear(4) router r = noisy_top_k(1) "
MOE = """block moe(k) {
  input x: float[tokens, dim]
  pool expert[2] = linear(4) router gate = noisy_top_k(k)
  y = x -> expert by gate
  output y
}
"""


def labels(body: str, blocks: str = "") -> list[str]:
    """The labels of what is recorded, which are the same in what is read back."""
    graph = loads(f"{blocks}model m() {{ {body} output x }}").ir
    found = [each.label for each in graph.decisions() if each.declared]
    for again in (from_json(to_json(graph)), parse_text(str(graph))):
        assert [each.label for each in again.decisions() if each.declared] == found, "a stored graph has other labels"
    assert {name.rpartition(".")[0] for name in graph.records()} == {*found}
    return found


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = x -> linear(4) x = x -> p by r", ["p"]),
        ("x = x -> p by r x = x -> p by r", ["x.p", "x2.p"]),
        ("y = x -> p by r x = x -> linear(4) x = (x -> p by r) + y", ["y.p", "x.p"]),
        ("x = x -> p by r -> p by r", ["p", "p2"]),
        ("repeat b[i] in 0..2 { x = x -> linear(4) x = x + (x -> p by r) }", ["b.0.p", "b.1.p"]),
        ('for k in ["one", "two"] { y[k] = x -> p by r } x = y["one"]', ["y.one.p", "y.two.p"]),
    ],
)
def test_a_use_is_called_after_its_place_and_its_pool(body: str, expected: list[str]) -> None:
    assert labels(HEAD + body) == expected


def test_a_block_around_a_use_is_called_after_what_distinguishes_it() -> None:
    start = "input x: float[5, 4] x = x -> linear(4) "
    assert labels(start + "x = x -> moe(1)", MOE) == ["moe.expert"]
    assert labels(start + "x = x -> moe(1) x = x -> moe(1)", MOE) == ["x2.moe.expert", "x3.moe.expert"]
    assert labels(start + "x = x -> moe(1) z = x -> moe(1) x = z", MOE) == ["x.moe.expert", "z.moe.expert"]
    assert labels(start + 'x = x -> moe(1, name="one") x = x -> moe(1, name="two")', MOE) == [
        "one.expert",
        "two.expert",
    ]


def test_a_route_keeps_its_label_when_another_is_left_out() -> None:
    text = f"model m() {{ {HEAD} y = x -> p by r z = x -> p by r output z loss t = y -> mean -> mean(axis=-1) }}"
    graph = loads(text).ir
    assert [each.label for each in apply_passes(graph, INFERENCE).decisions() if each.declared] == ["z.p"]
