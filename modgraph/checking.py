"""Checks a spec, and the recipe beside it, as `modgraph check` does. Needs neither torch nor numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from modgraph.diagnostics import Diagnostic, Report
from modgraph.elaboration import diagnose, elaborate_blocks
from modgraph.files import exists
from modgraph.log import log
from modgraph.store.run_directory import locate_recipe
from modgraph.syntax import ast, parse, read

if TYPE_CHECKING:
    from modgraph.program import Program


@dataclass(frozen=True)
class Checked:
    """Every mistake and caution of a spec and its recipe. `file` is the tree of a spec that was read, `recipe` the path
    of the recipe that was checked with it."""

    diagnostics: Sequence[Diagnostic]
    file: ast.File | None = None
    recipe: str | None = None

    @property
    def has_errors(self) -> bool:
        return any(each.severity == "error" for each in self.diagnostics)


def check_spec(path: str, values: Mapping[str, Any], recipe: str | None = None, needs: bool = True) -> Checked:
    """Check the spec at a path with values of parameters and dotted recipe keys. `recipe` replaces the one beside it.
    Without `needs`, packages and files that a training needs may be missing: it runs elsewhere."""
    report = Report()
    source = read(path, report)
    file = parse(source, report) if source is not None else None
    if recipe is None and source is not None and (file is None or file.models):
        recipe = next((str(each) for each in [locate_recipe(path)] if exists(each)), None)
    if source is not None and recipe is not None:
        from modgraph.program import load, read_program
        from modgraph.training.fit import diagnose_training
        from modgraph.training.recipe import key_overrides

        log.debug(f"checking {path} with its recipe {recipe}")

        def read_spec(_: object, **parameters: Any) -> Program:
            return read_program(source, parameters, Report(), file)

        found = diagnose_training(path, recipe, key_overrides(values), load if file is None else read_spec, needs)
        return Checked(found, file, recipe)
    if file is not None and (file.models or values):
        diagnose(file, values, report)
    elif file is not None:
        elaborate_blocks(file, report)
    return Checked(report.list_diagnostics(), file)
