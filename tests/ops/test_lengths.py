"""Axes of any length: what `check` accepts can be shown, costed, built and run, whatever the op, router or setting."""

from __future__ import annotations

from random import Random

import pytest

import modgraph
from modgraph.backends.report import compile_report
from modgraph.diagnostics import ModgraphError
from modgraph.ops import Op
from modgraph.routers import Router
from tests.assault.settings import sample_settings, written

SHAPES = ([6], [5, 6], [4, 5, 6], [2, 3, 6, 6])
LENGTHLESS = ("first", "second", "third", "fourth")


def specs(name: str, rng: Random) -> list[str]:
    """An op or router with sampled settings, on values of each rank with some axes of any length."""
    found = []
    for shape in SHAPES:
        for _ in range(6):
            axes = [LENGTHLESS[at] if rng.random() < 0.4 else length for at, length in enumerate(shape)]
            if isinstance(axes[0], int):
                axes[0] = LENGTHLESS[0]
            given = f"input x: {_type(name)}[{', '.join(map(str, axes))}{', 7' if _type(name) == 'token' else ''}]"
            found.append(f"model m() {{ {given} {_use(name, axes, rng)} output y }}")
    return found


def _type(name: str) -> str:
    op = Op.registry.get(name)
    return {"id": "token", "any": "float"}.get(dtype := op.operands[0].dtype, dtype) if op is not None else "float"


def _use(name: str, axes: list[object], rng: Random) -> str:
    if name in Op.registry:
        op = Op.registry[name]
        stage = written(name, sample_settings(op, rng))
        second = f" target t: {op.operands[1].dtype}[{', '.join(map(str, axes))}]" if len(op.operands) == 2 else ""
        return f"{second} y = {'(x, t)' if second else 'x'} -> {stage}"
    router = Router.registry[name.removeprefix("router ")]
    made = written(router.name, sample_settings(router, rng))
    return f"pool p[3] = {rng.choice(('linear(4)', 'layer_norm', 'conv(2)'))} router r = {made} y = x -> p by r"


NAMES = [*Op.registry, *(f"router {name}" for name in Router.registry if name != "every_module")]


@pytest.mark.some(15)
@pytest.mark.parametrize("name", NAMES)
def test_what_is_accepted_of_any_length_can_be_used(name: str) -> None:
    for text in specs(name, Random(name)):
        try:
            program = modgraph.loads(text)
        except ModgraphError:
            continue
        assert str(program.ir)
        assert program.cost().macs >= 0
        try:
            program.cost(first=3)
        except ModgraphError as error:
            assert "MG129" in str(error), text
        assert compile_report(program.ir, program.build()), text


def test_an_index_reads_no_further_than_every_example_goes() -> None:
    modgraph.loads("model m() { input x: float[time, 4] y = x -> select(0) output y }")
    with pytest.raises(ModgraphError, match=r'"time" has no fixed length(.|\n)*select\(0\)(.|\n)*last'):
        modgraph.loads("model m() { input x: float[time, 4] y = x -> select(1) output y }")


@pytest.mark.parametrize("op", ["batch_norm", "group_norm(2)", "layer_norm(learned=false)"])
def test_nothing_is_normalised_along_an_axis_of_any_length(op: str) -> None:
    with pytest.raises(ModgraphError, match="its padding would count"):
        modgraph.loads(f"model m() {{ input x: float[4, 3, time] y = x -> {op} output y }}")


def test_a_group_of_one_value_is_not_normalised() -> None:
    with pytest.raises(ModgraphError, match="a single value"):
        modgraph.loads("model m() { input x: float[2, 1, 1] y = x -> group_norm(2) output y }")
    modgraph.loads("model m() { input x: float[2, 1, 1] y = x -> group_norm(1) output y }")
