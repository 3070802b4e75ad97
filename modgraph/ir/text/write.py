"""A program as text: definitions, then the model; a line for each node, one for rounds that follow each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from modgraph.declare import format_value
from modgraph.ir.graph import Graph
from modgraph.ir.program.outline import outline
from modgraph.ir.program.program import Definition, Program
from modgraph.ir.text.lines import STEP, BodyLines, say_facts

WIDTH = 120
TOKENS = re.compile(
    r'"(?:[^"\\]|\\.)*"|[\[{}\]]|[,;] | -> | \(| weights (?!=)| by (?=[^ ]+ = )| (?:takes|records|facts) (?=\()|.', re.S
)
BREAKS = (" -> ", " by ", " (", " weights ", " takes ", " records ", " facts ")


def to_text(graph: Graph) -> str:
    """Print a graph's program."""
    return print_program(outline(graph))


def print_program(program: Program) -> str:
    """Print a program: `name: type = kind … (operands)`, the nodes of regions indented below their pool or scan."""
    parts = [_block(_head(each), BodyLines(each.graph, STEP, each.results, head=True)) for each in program.definitions]
    weights = [f"{STEP}{place}{_differences(marks)}" for place, marks in program.weights.items()]
    parts += [_block("weights", weights)] if weights else []
    return "\n\n".join([*parts, _block(f"model {heading(program.body)}", BodyLines(program.body, STEP))])


def heading(graph: Graph) -> str:
    """Write the model's name with its parameters, as a spec calls it."""
    given = ", ".join(f"{name}={format_value(value)}" for name, value in graph.parameters.items())
    return f"{graph.name}({given})"


def _head(definition: Definition) -> str:
    name = definition.name + (f" of {definition.author}" if definition.author != definition.name else "")
    operands = ", ".join(f"{name}: {type_}" for name, type_ in definition.graph.input_types.items())
    lists = {"takes": definition.takes, "axes": sorted(definition.axes), "members": sorted(definition.members)}
    facts = "".join(f" {word} ({', '.join(names)})" for word, names in lists.items() if names)
    return f"{definition.kind} {name}({operands}){facts}"


def _differences(marks: Mapping[str, Any]) -> str:
    """List the entries of a table of weights, including facts that are false."""
    no = {"initial": " init none", "frozen": " learns", "grown": " grown 0"}
    return "".join(say_facts({name: value}) or no[name] for name, value in marks.items())


def _block(head: str, lines: Iterable[str]) -> str:
    return "\n".join([*_wrap(f"{head} {{"), *(part for line in lines for part in _wrap(line)), "}"])


def _wrap(line: str) -> list[str]:
    """Wrap a line that is too long."""
    indent = " " * (len(line) - len(line.lstrip()) + 2 * len(STEP))
    found = [""]
    for piece in _pieces(line) if len(line) > WIDTH else [line]:
        if found[-1].strip() and len(found[-1]) + len(piece.rstrip()) > WIDTH:
            found[-1] = found[-1].rstrip()
            found.append(indent)
            piece = piece.lstrip()
        found[-1] += piece
    return found


def _pieces(line: str, lists: bool = False) -> Iterator[str]:
    """Split a line where it may be wrapped; strings and short lists stay whole."""
    pieces, depth = [""], 0
    for token in TOKENS.findall(line):
        depth += (token in "[{") - (token in "]}")
        if token in BREAKS:
            pieces.append("")
        pieces[-1] += token
        if token in (", ", "; ") and (lists or not depth):
            pieces.append("")
    for piece in pieces:
        too_long = len(piece) > WIDTH - 4 * len(STEP) and not lists
        yield from _pieces(piece, lists=True) if too_long else [piece]
