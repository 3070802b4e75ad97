"""Reads the spec that a run keeps back before training begins."""

from __future__ import annotations

from modgraph.diagnostics import Report, Source, render_all
from modgraph.elaboration import Imports, elaborate
from modgraph.ir import NotReadBack
from modgraph.program import Program
from modgraph.store.run_directory import RunDirectory
from modgraph.syntax import parse


def check_kept_spec(program: Program, directory: RunDirectory) -> None:
    """Raises `NotReadBack` unless the texts of a program's spec give its graph again."""
    assert program.standalone is not None, "the program was read from a text"
    report = Report()
    file = parse(Source(str(directory.spec), program.standalone.text), report)
    imports = Imports(directory.path, report, program.standalone.imports)
    found = None if file is None else elaborate(file, program.ir.parameters, report, imports=imports)
    if found is None or found.hash() != program.ir.hash():
        raise NotReadBack(f"the kept spec gives another graph, or none:\n{render_all(report.diagnostics)}")
