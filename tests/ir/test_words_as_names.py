"""The words of the text form are names too: of statements, axes, parameters, definitions, pools, members and loops."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from modgraph.ir import outline
from modgraph.ir.text.parse import grammar, parse_text
from modgraph.program import loads
from modgraph.syntax import keywords

WORDS = sorted({*re.findall(r"\b[a-z]{2,}\b", " ".join(each.pattern.value for each in grammar().terminals))})
FREE = [word for word in WORDS if word not in keywords()]


def test_words_of_printed_graphs_are_names_too() -> None:
    """A statement, an axis or a parameter may be called as a word of the form."""
    assert {"call", "place", "deferred", "takes", "weights", "key", "learns", "local"} < {*FREE}
    names = "\n".join(f'{word} = {before} -> linear(4, name="{word}")' for before, word in pairwise(["x", *FREE]))
    for word in FREE:
        graph = loads(f"model {word}({word}=2) {{ input x: float[{word}, 4] {names} output {FREE[-1]} }}").ir
        assert parse_text(str(graph)) == graph, word
        assert str(parse_text(str(graph))) == str(graph), word


@pytest.mark.some(8)
@pytest.mark.parametrize("word", FREE)
def test_words_of_printed_graphs_are_names_of_definitions_and_pools_too(word: str) -> None:
    """A block, a loop, its variable, a pool, a router, a module, a value or a member may be called so."""
    graph = loads(NAMED.replace("WORD", word).replace("OTHER", f"{word}_")).ir
    assert {word, f"{word}_"} <= {each.author for each in outline(graph).definitions}
    assert parse_text(str(graph)) == graph
    assert str(parse_text(str(graph))) == str(graph)


NAMED = """block WORD(g) {
  input x: float[t, d]
  pool WORD[3] = linear(4)
  h = x -> layer_norm -> WORD by g
  output h
}
model m {
  input x: float[time, 4]
  module OTHER = linear(4) -> relu
  router g = noisy_top_k(1)
  h[0] = x -> OTHER
  repeat WORD[i] in 1..3 {
    h[i] = h[i - 1] -> WORD(g) -> OTHER
    repeat OTHER[WORD] in ["WORD", "another"] { y = x -> linear(4) -> linear(4, name="WORD") }
  }
  output WORD = h[2]
}"""
