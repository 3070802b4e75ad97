"""Values laid along a new axis: `stack`, of families and of what stands in parentheses."""

from __future__ import annotations

import pytest
import torch

from modgraph.diagnostics import ModgraphError
from modgraph.ir.text.parse import parse_text
from modgraph.program import Program, loads


def model(body: str) -> Program:
    return loads(f"model m() {{ input x: float[time, 4] {body} }}")


def type_of(body: str) -> str:
    graph = model(f"{body} output y").ir
    assert parse_text(str(graph)) == graph
    return str(graph.type_of(graph.outputs["y"]))


FAMILY = "for k in 0..3 { s[k] = x -> linear(2) }"


@pytest.mark.parametrize(
    ("body", "type_"),
    [
        (f"{FAMILY} y = s -> stack", "float[s=3, time, 2]"),
        (f"{FAMILY} y = s -> stack()", "float[s=3, time, 2]"),
        (f'{FAMILY} y = s -> stack(axis="task")', "float[task=3, time, 2]"),
        (f'{FAMILY} y = s -> stack -> mean(axis="s")', "float[time, 2]"),
        ("y = (x, x) -> stack", "float[2, time, 4]"),
        ('y = (x, x) -> stack("two")', "float[two=2, time, 4]"),
        ("pool p[2] = linear(3) z = x -> mean y = (z, z) -> stack(axis=p)", "float[p=2, 4]"),
        ("z = x -> mean y = (x -> mean -> mean(axis=-1), 2 * (z -> mean(axis=-1))) -> stack", "float[2]"),
        (
            "pool p[3] = linear(4) h = x -> mean -> p z = x -> mean -> linear(12) y = (h, h) -> stack",
            "float[2, p=3, 4]",
        ),
    ],
)
def test_the_new_axis_stands_first_and_is_called_after_the_family(body: str, type_: str) -> None:
    assert type_of(body) == type_


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("y = (x, x -> linear(3)) -> stack", "outer axes"),
        ('y = (x, x) -> stack(axis="time")', 'the axis "time" would occur twice'),
        (
            'y = x -> mean -> linear(4) pool p[3] = linear(4) z = y -> p -> rename(p="a b")',
            '"a b" is no name of an axis',
        ),
        (
            "pool p[2] = linear(4) router r = agreement() z = x -> p by r "
            'y = (importance(r), importance(r, over="example")) -> stack',
            "or all over the batch",
        ),
    ],
)
def test_what_does_not_fit_is_reported(body: str, reason: str) -> None:
    with pytest.raises(ModgraphError, match=reason) as caught:
        model(f"{body} output y")
    assert [each.code for each in caught.value.diagnostics] == ["MG301"]


def test_a_stacked_family_holds_its_members() -> None:
    net = model(f"{FAMILY} y = s -> stack output y for k in 0..3 {{ output s[k] }}").build(seed=0)
    found = net(x=torch.randn(2, 5, 4))
    for k in range(3):
        assert torch.equal(found["y"][:, k], found[f"s.{k}"])


def test_an_op_of_the_users_own_name_takes_the_family_whole() -> None:
    """A block that is called `sum` is that block, for a family too."""
    text = "block sum() { input a: float[4] input b: float[4] c = a * b output c }"
    graph = loads(f"{text} model m() {{ input x: float[4] for k in 0..2 {{ s[k] = x * 2 }} y = s -> sum output y }}").ir
    assert [node.name for node in graph if node.name.endswith("multiply")]
