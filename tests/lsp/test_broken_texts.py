"""Every question has an answer while a text is broken, wherever it is cut, and answers are of the text itself."""

from __future__ import annotations

from pathlib import Path
from random import Random

from modgraph.diagnostics import Report, Source
from modgraph.elaboration import resolve_path
from modgraph.lsp import convert
from modgraph.lsp.analysis import analyse
from modgraph.lsp.fixes import find_fixes
from modgraph.lsp.hints import token_types, type_hints
from modgraph.lsp.outline import outline
from modgraph.lsp.project import CannotRename, Project
from modgraph.lsp.queries import complete, definition, hover
from modgraph.lsp.repair import parse_broken
from modgraph.lsp.signatures import signature_at
from modgraph.syntax import parse, read

SPECS = [resolve_path(Path("specs") / f"{name}.mod") for name in ("gmoe_digits", "smn", "sema_backbone")]
SIGNS = ["->", "{", "}", "(", ")", '"', "[", " by ", " 3 ", "é😀", "= ", ",", ".", "\0", 'import x from "y.mod"\n']
CASES = 4


def spoil(text: str, rng: Random) -> str:
    """A text as it is while one types: cut off, with a gap, or with a sign too many."""
    at = rng.randrange(len(text))
    match rng.randrange(3):
        case 0:
            return text[:at]
        case 1:
            return text[:at] + text[at + rng.randrange(1, 40) :]
        case _:
            return text[:at] + rng.choice(SIGNS) + text[at:]


def ask_everything(path: Path, text: str, rng: Random) -> None:
    source = Source(str(path), text)
    analysis = analyse(source)
    project = Project((path.parent,), lambda name: source if name == source.name else read(name, Report()))
    occurrences = project.occurrences(source.name)
    assert all(each.span.text == each.symbol.name for each in occurrences)
    convert.encode_tokens(source, token_types(analysis, occurrences))
    list(type_hints(analysis, 0, len(text)))
    list(find_fixes(analysis, 0, len(text)))
    extents = {each.name: each.span for each in (analysis.file.definitions if analysis.file is not None else ())}
    for entry in outline(occurrences, extents):
        convert.document_symbol_of(entry)
    for _ in range(5):
        offset = rng.randrange(len(text) + 1)
        complete(analysis, offset)
        hover(analysis, offset, occurrences)
        definition(analysis, offset)
        signature_at(analysis, project, offset)
    for found in rng.sample(occurrences, min(1, len(occurrences))):
        assert found in list(project.references(found))
        try:
            project.rename(found, "something_else")
        except CannotRename:
            continue


def test_every_question_has_an_answer_wherever_a_text_is_cut() -> None:
    rng = Random(0)
    for case in range(CASES):
        path = rng.choice(SPECS)
        text = spoil(path.read_text(), rng)
        try:
            ask_everything(path, text, rng)
        except Exception as error:
            error.add_note(f"case {case} of {path.name}: {text!r}")
            raise


def test_a_broken_line_mostly_costs_only_that_line() -> None:
    rng = Random(1)
    lost = []
    for path in SPECS * 4:
        lines = path.read_text().split("\n")
        whole = parse(Source(str(path), "\n".join(lines)), Report())
        at = rng.choice([at for at, line in enumerate(lines) if line.strip() and line.strip()[0] not in "#}"])
        lines[at] = lines[at][: rng.randrange(len(lines[at]))]
        tree = parse_broken(Source(str(path), "\n".join(lines)))
        assert whole is not None
        count = [
            sum(len(list(each.body.every_statement())) for each in file.definitions) for file in (whole, tree) if file
        ]
        lost.append(count[0] - (count[1] if len(count) > 1 else 0))
    assert sorted(lost)[len(lost) * 3 // 4] <= 2, "three of four mistakes leave all but two statements"
