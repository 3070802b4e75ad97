"""What is offered at a place, as a function of the text alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from modgraph.diagnostics import Source
from modgraph.lsp.analysis import analyse
from modgraph.lsp.queries import complete, definition, hover

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
    return {each.label for each in complete(analysis, offset)}


@pytest.mark.parametrize("broken", ["  use = r.|\n", "  use = r.|gates\n"])
def test_behind_the_dot_of_a_router_stand_its_records(broken: str) -> None:
    text = TEXT.replace("  use = r.|\n  loss |\n", broken)
    assert offered(text) == {"gates", "scores", "selected", "load"}


def test_a_loss_begins_with_an_op_or_a_value() -> None:
    found = offered(TEXT.replace("r.|", "r.gates"))
    assert {"mse", "importance", "y", "use"} <= found


def test_families_and_what_scans_bind_are_names() -> None:
    assert {"head", "step", "steps", "k", "x"} <= offered(TEXT.replace("r.|", "r.gates"))


def test_a_file_of_only_blocks_has_names_too() -> None:
    text = "block b(width) { input x: float[4] y = x -> linear(4) output | }"
    assert {"x", "y"} <= offered(text)


BLOCKS = """block ffn(dim, hidden=8) { input x: float[t, dim] y = x -> linear(hidden) -> linear(dim) output y }
block moe(inner, kind=agreement(2)) {
  input x: float[t, d]
  pool p[4] = inner
  router r = kind
  y = x -> p by r -> mean
  output y
}
model m(w=8) {
  input x: float[5, 6]
  y = x -> moe(ffn(6, hidden=w), kind=noisy_top_k(k=1))
  output y
}
"""


def with_bar(before: str) -> str:
    """The text of blocks with a bar behind the last place where something stands."""
    at = BLOCKS.rindex(before) + len(before)
    return f"{BLOCKS[:at]}|{BLOCKS[at:]}"


def test_what_a_block_may_be_given_is_offered() -> None:
    assert {"inner=", "kind=", "noisy_top_k", "relu", "ffn"} <= offered(with_bar("x -> moe("))
    assert {"dim=", "hidden="} <= offered(with_bar("ffn("))
    assert {"noisy_top_k", "agreement", "relu"} <= offered(with_bar("kind="))


def test_parameters_are_offered_where_they_may_stand() -> None:
    assert {"inner", "kind"} <= offered(with_bar("pool p[4] ="))
    assert {"inner", "kind", "agreement"} <= offered(with_bar("router r ="))
    broken = BLOCKS.replace("pool p[4] = inner", "y = x -> |")
    assert "inner" in offered(broken)


def test_an_argument_has_a_page_and_a_definition() -> None:
    def hover_and_definition(before: str) -> tuple[str, int | None]:
        text = with_bar(before)
        analysis, offset = analyse(Source("m.mod", BLOCKS)), text.index("|")
        span = definition(analysis, offset)
        return hover(analysis, offset) or "", span.start if span is not None else None

    assert hover_and_definition("x -> moe(") == ("`float[6]`\n\n`block ffn(dim, hidden=8)`", BLOCKS.index("ffn"))
    assert hover_and_definition("pool p[4] = ") == ("`ffn(6, hidden=w)`", BLOCKS.index("inner"))
    assert "noisy_top_k" in hover_and_definition("kind=")[0]


def test_an_imported_block_is_known_by_its_parameters(tmp_path: Path) -> None:
    (tmp_path / "blocks.mod").write_text(BLOCKS[: BLOCKS.index("model")])
    text = 'import moe, ffn from "blocks.mod" model m() { input x: float[5, 6] y = x -> moe(| output y }'
    source = Source(str(tmp_path / "m.mod"), text.replace("|", ""))
    found = complete(analyse(source), text.index("|"))
    assert {"inner=", "kind="} <= {each.label for each in found}


def test_an_axis_with_a_name_has_a_page_and_a_definition() -> None:
    text = (
        "model m() { input x: float[4] target y: class[kind=3] weight w: float[kind, 4] = zeros "
        "z = x -> linear(kind) output z }"
    )
    analysis = analyse(Source("m.mod", text))
    for use in (text.index("kind="), text.index("kind, 4"), text.index("kind) output")):
        assert hover(analysis, use) == "`axis kind=3`"
        span = definition(analysis, use)
        assert span is not None and span.start == text.index("kind=3")
    assert "kind" in offered(text.replace("linear(kind)", "linear(|)"))
