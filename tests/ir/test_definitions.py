"""What becomes one definition and what does not, for each way in which rounds and calls can depend on each other."""

from __future__ import annotations

import pytest

from modgraph.ir import Graph, to_text
from modgraph.program import loads
from tests.ir.same import assert_kept

POOL = "pool p[3] = linear(8) router g = noisy_top_k(1)"
CASES = {
    "the first round reads a number": (
        "s = 0 repeat b[i] in 0..4 { s = s + (x -> linear(8)) } output s",
        {"round b(x: ": 1, "round b2 of b(": 1, "b[1..4] = call b2 (x, b[-1]/s.add)": 1},
    ),
    "rounds read the round before": (
        "h[0] = x repeat b[i] in 1..5 { h[i] = h[i - 1] -> linear(8) } output h[4]",
        {
            "round b": 1,
            "members (h)": 1,
            "h.#.linear: ": 1,
            "b.1 = call b (x)": 1,
            "b[2..5] = call b (b[-1]/h.#.linear)": 1,
        },
    ),
    "rounds read all before": (
        "h[0] = x repeat b[i] in 1..5 { h[i] = h -> concat -> linear(8) } output h[4]",
        {"round b": 4, "= call ": 4, "call b4 (x, b[1..4]/h.#.linear)": 1},
    ),
    "rounds read the two before": (
        "h[0] = x h[1] = x repeat b[i] in 2..6 { h[i] = h[i - 1] + h[i - 2] } output h[5]",
        {"call b2 (b.2/h.#.add, x)": 1, "call b2 (b.3/h.#.add, b.2/h.#.add)": 1},
    ),
    "two loops of one name": (
        "repeat b[i] in 0..3 { x = x -> relu } repeat b[i] in 0..3 { x = x -> tanh } output x",
        {"round b(": 1, "round b2 of b(": 1, "b[1..3] = call b (b[-1]/x.relu)": 1, "b.0~2 = call b2": 1},
    ),
    "string keys": (
        'repeat b[i] in ["left", "right"] { h[i] = x -> linear(8) } y = h["left"] + h["right"] output y',
        {
            "round b(": 1,
            "b.left = call b (x)": 1,
            "b.right = call b (x)": 1,
            "op add (b.left/h.#.linear, b.right/h.#.linear)": 1,
        },
    ),
    "sizes that the round says": (
        "repeat b[i] in 0..3 { pool e[2 + i] = linear(8) x = x -> e -> mean(axis=e) } output x",
        {"round b": 3, "e = pool[2]": 1, "e = pool[3]": 1, "e = pool[4]": 1},
    ),
    "members of a family are passed in": (
        """repeat a[i] in 0..3 { pool adapters[3] = linear(8) }
        repeat b[i] in 0..3 { x = x -> adds(adapters[i]) } output x""",
        {"block adds(": 1, "call adds": 1, "b.1 = call b (b.0/x.adds/y.mean) takes (adapters <- a.1.adapters)": 1},
    ),
    "a router of some rounds is used outside": (
        f"""repeat b[i] in 0..3 {{ if i > 0 {{ {POOL} x = x -> p by g }} else {{ x = x -> relu }} }}
        loss importance(g) output x""",
        {"round b(": 1, "round b2 of b(": 1, "importance (b[1,2]/x.p/axes.mask_padding)": 1},
    ),
    "losses and records in blocks that are arguments": (
        f"""{POOL} repeat b[i] in 0..2 {{ x = x -> applies(counted(p, g)) }} output x""",
        {"block counted": 2, "block applies": 2, "loss.importance = loss op importance": 2},
    ),
    "modules taken by arguments and scans": (
        """module e = linear(8) -> tanh repeat b[i] in 0..2 { x = x -> applies(e)
        scan x as v with h: float[8] { h = (v -> e) + h yield h } as x } output x""",
        {"weights e": 2, "module e(": 1, "module e2 of e(": 1, "block applies(": 1},
    ),
    "messages of one value and pool in all rounds": (
        "pool p[3] = linear(8) w = x -> linear(p) -> softmax repeat b[i] in 0..4 { y[i] = x -> p by w } output y[3]",
        {"round b(": 1, "takes (p, time)": 1, "b[0..4] = call b (x, w.softmax)": 1},
    ),
    "weights whose name holds the key again": (
        "repeat b[i] in 0..3 { h[i] = x -> linear(8) x = h[i] -> linear(8) } output x",
        {"round b(": 1, "h.#.linear": 1, "b[1..3] = call b (b[-1]/x.linear)": 1},
    ),
    "keys that are no members": (
        "repeat b[i] in [1, 2, -1] { if i > 0 { h[i] = x -> linear(8) } } output h[2]",
        {"round b(": 1, "round b2 of b(": 1, "h.1.linear: ": 1, "h.2.linear: ": 1},
    ),
}
BLOCKS = """block adds(q) { input x: float[t, d] y = x -> q -> mean(axis=q) output y }
block applies(f) { input x: float[t, d] y = x -> f output y }
block counted(p, g) { input x: float[t, d] y = x -> p by g loss importance(g) output y }
"""


def graph_of(statements: str) -> Graph:
    return loads(f"{BLOCKS}model m {{\n input x: float[time, 8]\n {statements}\n}}").ir


@pytest.mark.parametrize("name", CASES)
def test_each_way_has_its_definitions(name: str) -> None:
    statements, lines = CASES[name]
    graph = graph_of(statements)
    assert_kept(graph)
    text = to_text(graph)
    assert {line: text.count(line) for line in lines} == lines, text


def test_draws_keep_their_order_where_a_pool_is_first_used_in_a_round() -> None:
    """Noise is drawn in the order of nodes: a pool of the model that a round uses first stands in that round."""
    graph = graph_of(f"{POOL} repeat b[i] in 0..2 {{ h = x -> dropout(0.5) x = h -> p by g }} output x")
    names = [node.name for node in graph]
    assert names.index("b.0.h.dropout") < names.index("p") < names.index("g")
    assert "p = place" in to_text(graph)
    assert "p = deferred pool[3]" in to_text(graph)
    assert_kept(graph)


def test_lengths_follow_where_a_block_is_called_with_padded_and_plain_axes() -> None:
    graph = loads("""block pooled { input x: float[t, d] y = x -> attention(2) -> mean(axis=-2) output y }
    model m { input x: float[time, 8] input z: float[5, 8] input w: float[chars, 8]
      a = x -> pooled b = z -> pooled c = w -> pooled output a output b output c }""").ir
    assert str(assert_kept(graph).body.name) == "m"
    assert [sorted(graph.lengths(f"{each}.pooled.y.mean")) for each in "abc"] == [["time"], [], ["chars"]]


def test_a_text_says_once_what_many_rounds_do() -> None:
    few, many = (
        to_text(graph_of(f"repeat b[i] in 0..{n} {{ x = x + (x -> layer_norm -> linear(8)) }} output x"))
        for n in (3, 200)
    )
    assert few.replace("b[1..3]", "b[1..200]").replace("b.2", "b.199") == many
