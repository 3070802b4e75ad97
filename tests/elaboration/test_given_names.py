"""Names that a spec gives in strings: what `check` accepts can be stored and read again."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modgraph.declare import Declaration, Setting, format_value
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, from_json, to_json
from modgraph.ir.text.parse import parse_text
from modgraph.ir.text.write import to_text
from modgraph.ops import Op
from modgraph.program import loads
from modgraph.routers import Router
from tests.examples import OP_EXAMPLES, ROUTER_EXAMPLES
from tests.ordinary_run import some_examples

HEAD = "model m() { input x: float[2, 6]"
ARRAYS = {name: f"{HEAD} y = x -> {name}(sizes=[3]) output y }}" for name in ("constant", "parameter", "state")}
RENAME = f'{HEAD} pool p[3] = linear(4) z = x -> p y = z -> rename(p="NAME") output y }}'
ELSEWHERE = {
    "the name of an op": f'{HEAD} y = x -> linear(3, name="NAME") output y }}',
    "a new name of an axis": RENAME,
    "the name of a member": f'{HEAD} y["NAME"] = x -> linear(3) output y["NAME"] }}',
    "a value of a loop": f'{HEAD} repeat r in ["NAME"] {{ x = x -> linear(6) }} output x }}',
    "values of a for": f'{HEAD} for k in ["NAME", 0, -1] {{ y = x -> linear(6) output y }} }}',
    "a parameter": 'model m(p="NAME") { input x: float[6] y = x -> linear(3) output y }',
}


def with_setting(text: str, called: str, setting: Setting) -> str:
    """The first call of an op or router in a spec, with a string for one of its settings."""
    value = '["NAME"]' if setting.kinds == (tuple,) else '"NAME"'
    match = re.search(rf"\b{called}\b(?:\(([^()]*)\))?(?=\s|$)", text.replace("model example()", "model example__"))
    assert match is not None, f"no call of {called} in its example"
    given = re.sub(rf',?\s*\b{setting.name}=(\[[^\]]*\]|"[^"]*"|[^,]*)', "", match[1] or "")
    arguments = ", ".join(filter(None, [given, f"{setting.name}={value}"]))
    shift = len("model example()") - len("model example__")
    return f"{text[: match.start() + shift]}{called}({arguments}){text[match.end() + shift :]}"


def cases() -> dict[str, str]:
    """A spec for each setting of an op or router that takes a string, with NAME in its place."""
    known: list[tuple[str, type[Declaration], str]] = [
        *((name, Op.registry[name], ARRAYS.get(name, text)) for name, text in OP_EXAMPLES.items()),
        *((name, Router.registry[name], text) for name, text in ROUTER_EXAMPLES.items()),
    ]
    takes = {
        f"{setting.name} of {name}": with_setting(text, name, setting)
        for name, declared, text in known
        if name not in ("rename", "weighted")  # which are not called with settings
        for setting in declared.settings().values()
        if str in setting.kinds or (tuple in setting.kinds and str in setting.items)
    }
    return takes | ELSEWHERE


CASES = cases()
NAMES_ONE_ANEW = [
    "named of linear",
    "axis of new_axis",
    "into of merge",
    "axis of stack",
    "into of dispatch",
    "axis of first_places",
    "the name of an op",
    "a new name of an axis",
    "the name of a member",
]
TRICKY = [
    "hidden units",
    "hidden_units",
    "gro\u0308ße",
    "größe",
    "x\u0302",
    "\ufb01t",
    "٣",
    "a.3",
    "3",
    "a..b",
    "a\nb",
    "a\u2028b",
    "\x00",
    "\ud800",
    "",
    "over batch",
    "frozen",
    "lambda",
    "a" * 20_000,
]


def graph_of(case: str, name: str) -> Graph:
    return loads(CASES[case].replace('"NAME"', format_value(name))).ir


def test_every_setting_of_an_op_that_takes_a_string_is_tried() -> None:
    for name in ("conv", "linear", "unmerge", "cross_entropy", "batch_mean", "within_capacity"):
        assert any(case.endswith(f" of {name}") for case in CASES), f"no string is given to {name}"


@some_examples(400)
@given(st.sampled_from(sorted(CASES)), st.sampled_from(TRICKY) | st.text(max_size=6))
def test_what_is_accepted_reads_back_as_json_and_as_text(case: str, name: str) -> None:
    try:
        graph = graph_of(case, name)
    except ModgraphError:
        return
    stored, printed = from_json(json.loads(json.dumps(to_json(graph)))), parse_text(to_text(graph))
    assert to_json(stored) == to_json(graph), "another graph as JSON"
    assert (printed, printed.parameters) == (graph, graph.parameters), "another graph as text"


@pytest.mark.parametrize("case", NAMES_ONE_ANEW)
def test_a_name_of_two_words_is_refused_where_it_is_given(case: str) -> None:
    with pytest.raises(ModgraphError) as caught:
        graph_of(case, "hidden units")
    message, *_ = caught.value.diagnostics
    assert message.span is not None, "the message has no place"
    assert "hidden units" in message.span.source.text[message.span.start : message.span.end], "it points elsewhere"
    assert graph_of(case, "hidden_units").hash(), "a name of one word is refused"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("hidden units", 'letters, digits and underscores, not "hidden units"'),
        ("gro\u0308ße", "normal form"),
        ("3", "letters, digits and underscores"),
    ],
)
def test_the_message_says_what_an_axis_may_be_called(name: str, problem: str) -> None:
    with pytest.raises(ModgraphError, match=problem) as caught:
        graph_of("named of linear", name)
    assert [each.code for each in caught.value.diagnostics] == ["MG206"]


def test_the_help_is_a_name_that_is_accepted() -> None:
    with pytest.raises(ModgraphError, match='as in named="hidden_units"'):
        graph_of("named of linear", "hidden units")


def test_iterations_over_numbers_below_zero_are_called_by_their_places() -> None:
    graph = loads(f"{HEAD} repeat r in [-1, 0, 1] {{ x = x -> linear(6) }} output x }}").ir
    assert [node.name for node in graph if "linear" in node.name] == [f"r.{place}.x.linear" for place in range(3)]


@pytest.mark.parametrize("call", ['rename(["-1", "member"])', 'rename(names=["-1", "member"])'])
def test_a_plain_axis_gets_the_name_of_an_axis_that_the_block_declared(call: str) -> None:
    text = f"""block fade() {{
      input x: float[time, 3]
      weight rate: float[member=3, key=2] = ones
      scan x as v with s: float[member, key] {{
        s = (v -> {call}) * s + rate
        yield s -> sum(axis=-1)
      }} as read
      output read
    }}
    model m() {{ input x: float[time, 3] output y = x -> fade }}"""
    graph = loads(text).ir
    assert [axis.size for axis in graph.type_of(graph.outputs["y"]).shape] == [None, 3]


@pytest.mark.parametrize("call", ['rename(["-2", "token"])', 'rename(names=["-2", "token"])'])
def test_a_plain_axis_is_renamed_by_its_place(call: str) -> None:
    graph = loads(f"model m() {{ input x: float[5, 4] y = x -> {call} output y }}").ir
    (shape,) = (str(graph.type_of(result)) for result in graph.outputs.values())
    assert shape == "float[token=5, 4]"


@pytest.mark.parametrize(
    "call",
    [
        'rename("-2", "token")',
        'rename(-2, "token")',
        'rename(["-2", "token"], ["-1", "a"])',
        'rename("-2")',
        "rename([3])",
    ],
)
def test_a_rename_that_fits_no_axis_suggests_one_of_a_plain_axis(call: str) -> None:
    with pytest.raises(ModgraphError, match=re.escape('rename(["-2", "token"])')):
        loads(f"model m() {{ input x: float[5, 4] y = x -> {call} output y }}")
