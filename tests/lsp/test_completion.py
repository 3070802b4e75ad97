"""What is offered at a place, as a function of the text alone."""

from __future__ import annotations

import pytest

from modgraph.diagnostics import Source
from modgraph.lsp.analysis import analyse
from modgraph.lsp.queries import complete

TEXT = """model net(width=8) {
  input x: float[5, 4]
  pool p[3] = linear(4)
  router r = noisy_top_k(k=1)
  for k in 0..2 { head[k] = x -> linear(width) }
  scan x as step { yield step -> relu } as steps
  y = x -> p by r
  use = r.|
  loss |
}
"""


def offered(text: str) -> set[str]:
    """What is offered where the text has a bar."""
    offset = text.index("|")
    analysis = analyse(Source("net.mod", text.replace("|", "")))
    return {each.text for each in complete(analysis, offset)}


@pytest.mark.parametrize("broken", ["  use = r.|\n", "  use = r.|gates\n"])
def test_behind_the_dot_of_a_router_stand_its_records(broken: str) -> None:
    text = TEXT.replace("  use = r.|\n  loss |\n", broken)
    assert offered(text) == {"gates", "scores", "selected", "load"}


def test_a_loss_begins_with_an_op_or_a_value() -> None:
    found = offered(TEXT.replace("r.|", "r.gates"))
    assert {"mse", "importance", "y", "use"} <= found


def test_families_and_what_scans_bind_are_names() -> None:
    assert {"head", "step", "steps", "k", "x"} <= offered(TEXT.replace("r.|", "r.gates"))


def test_a_file_of_blocks_alone_has_names_too() -> None:
    text = "block b(width) { input x: float[4] y = x -> linear(4) output | }"
    assert {"x", "y"} <= offered(text)
