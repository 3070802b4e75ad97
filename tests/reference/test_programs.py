"""Programs that show what the vocabulary's examples do not: torch computes what the interpreter says of each."""

from __future__ import annotations

import ast
import sys
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

import modgraph
from modgraph.diagnostics import ModgraphError
from tests.assault.sound import sound
from tests.reference import Unsupported
from tests.reference.against_torch import LONGEST, Array, compare, random_batch, random_model
from tests.reference.programs import PROGRAMS

MOST_MACS = 300_000  # of a spec written at random


@pytest.mark.some(40)
@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("text", PROGRAMS)
def test_a_program_computes_its_meaning_though_an_example_is_empty(text: str, training: bool) -> None:
    program = modgraph.loads(text)
    compare(program, _with_an_empty_example(program), random_model(program), training)


def _with_an_empty_example(program: modgraph.Program) -> dict[str, Array]:
    """A batch whose last example has nothing along any axis of any length."""
    batch = random_batch(program)
    for name, type_ in program.ir.input_types.items():
        if type_.dtype == "length":
            batch[name][-1] = 0
    return batch


@pytest.mark.some(60)
@pytest.mark.parametrize("part", [*range(2), *(pytest.param(part, marks=pytest.mark.slow) for part in range(2, 200))])
def test_sound_specs_compute_what_they_mean(part: int) -> None:
    """Fifty written at random; numbers that are none are compared with nothing."""
    for n in range(50 * part, 50 * part + 50):
        try:
            program = modgraph.loads(sound(Random(n)))
            if program.cost(**{axis: LONGEST for axis in _any_length(program)}).macs > MOST_MACS:
                continue
        except ModgraphError:  # a mistake, or more positions than there are
            continue
        for training in (False, True):
            with suppress(Unsupported):
                compare(program, random_batch(program, n), random_model(program, n), training)


def _any_length(program: modgraph.Program) -> set[str]:
    return {axis for type_ in program.ir.input_types.values() for axis in type_.padded}


def test_the_interpreter_is_independent() -> None:
    """It imports nothing but itself, numpy and Python's own library."""
    for path in Path(__file__).parent.glob("*.py"):
        if path.name.startswith("test_") or path.name in ("against_torch.py", "programs.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            roots = {name.partition(".")[0] for name in names if not name.startswith("tests.reference")}
            assert roots <= {"numpy", *sys.stdlib_module_names}, f"{path.name} imports {roots}"
