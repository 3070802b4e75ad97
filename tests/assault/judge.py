"""What is asked of modgraph for any text: messages with true places, or a graph that survives all it is put through."""

from __future__ import annotations

import json
from random import Random

from modgraph.diagnostics import Diagnostic, ModgraphError, Report, Source, Span, render
from modgraph.inspect.cost import compute_cost
from modgraph.ir import Graph, from_json, to_json
from modgraph.ir.text.parse import parse_text
from modgraph.lsp.analysis import analyse
from modgraph.lsp.queries import complete, definition, hover
from modgraph.passes import INFERENCE, apply_passes
from modgraph.program import loads
from modgraph.syntax import parse
from modgraph.syntax.format import format_source


def judge(text: str, rng: Random, thorough: bool) -> str:
    """What became of a text: "sound" or "refused". Raises whatever should not happen.

    `thorough` lays a sound spec out, and reads its graph back from text and JSON. What no text decides about is asked
    of some: editors of one in five, the inference graph's text and JSON of one in four.
    """
    try:
        program = loads(text)
    except ModgraphError as error:
        check_messages(error.diagnostics, text)
        assert any(each.severity == "error" for each in error.diagnostics), "refused without a reason"
        if rng.random() < 0.1:
            check_layout(text, None)
            check_editor(text, rng)
        return "refused"
    check_messages(program.warnings, text)
    compute_cost(program.ir)
    inferred = apply_passes(program.ir, INFERENCE)
    if thorough:
        check_stored(program.ir)
        check_layout(text, program.ir)
        if rng.random() < 0.25:
            check_stored(inferred)
        if rng.random() < 0.2:
            check_editor(text, rng)
    return "sound"


def check_messages(diagnostics: tuple[Diagnostic, ...], text: str) -> None:
    """Every message can be shown, and points into the text it speaks of."""
    for each in diagnostics:
        assert each.text() and render(each) and json.dumps(each.as_json())
        for span in (each.span, *(note.span for note in each.notes)):
            if span is not None:
                check_span(span, text)


def check_span(span: Span, text: str) -> None:
    source = span.source
    assert source.name != "<string>" or source.text == text, "a place in another text"
    assert 0 <= span.start <= span.end <= len(source.text), f"{span.start} to {span.end} of {len(source.text)}"
    for offset in (span.start, span.end):
        line, column = source.position(offset)
        lines = source.text.split("\n")
        assert 1 <= line <= len(lines) and 1 <= column <= len(lines[line - 1]) + 1, (
            f"{offset} is not at {line}:{column}"
        )
        assert sum(len(each) + 1 for each in lines[: line - 1]) + column - 1 == offset, f"{offset} is {line}:{column}"


def check_stored(graph: Graph) -> None:
    """A graph reads back from its JSON and its text."""
    name = graph.hash()
    assert from_json(json.loads(json.dumps(to_json(graph)))).hash() == name, "JSON reads back differently"
    assert parse_text(str(graph)).hash() == name, "the text form reads back differently"


def check_layout(text: str, graph: Graph | None) -> None:
    """The layout is one, is that of itself, and means what the text means."""
    report = Report()
    formatted = format_source(Source("<string>", text), report)
    if formatted is None:
        assert report.errors, "no layout, and no reason"
        return
    assert format_source(Source("<string>", formatted), Report()) == formatted, "the layout is laid out anew"
    if graph is not None:
        assert loads(formatted).ir.hash() == graph.hash(), "the layout means something else"
    else:
        assert parse(Source("<string>", formatted), Report()) == parse(Source("<string>", text), Report()), (
            "another tree"
        )


def check_editor(text: str, rng: Random) -> None:
    """An editor may ask anything at any place."""
    analysis = analyse(Source("<string>", text))
    check_messages(analysis.diagnostics, text)
    for at in (rng.randint(0, len(text)), len(text)):
        complete(analysis, at)
        hover(analysis, at)
        if (span := definition(analysis, at)) is not None:
            check_span(span, text)
