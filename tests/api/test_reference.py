"""The page of the Python API is that of the docstrings, and these say what must be known."""

from __future__ import annotations

import inspect
import runpy
from pathlib import Path
from typing import Any

import modgraph

SCRIPT = Path(__file__).parents[2] / "docs/python_reference.py"
PAGE: dict[str, Any] = runpy.run_path(str(SCRIPT))
MEMBERS: dict[str, str] = {name: members for part in PAGE["PARTS"].values() for name, members in part.items()}


def test_the_page_is_that_of_the_docstrings() -> None:
    assert SCRIPT.with_name("python.md").read_text() == PAGE["write_page"](), "run: python docs/python_reference.py"


def test_the_page_has_every_public_name() -> None:
    assert sorted(MEMBERS) == sorted(modgraph.__all__)


def test_every_public_name_and_member_has_a_docstring() -> None:
    bare = [name for name in MEMBERS if not getattr(modgraph, name).__doc__]
    for name, members in MEMBERS.items():
        owner = getattr(modgraph, name)
        bare += [
            f"{name}.{each}"
            for each in members.split()
            if not PAGE["docstring"](inspect.getattr_static(owner, each)).strip()
        ]
    assert bare == []


def test_functions_say_what_they_raise() -> None:
    functions = [name for name in MEMBERS if inspect.isfunction(getattr(modgraph, name))]
    assert [name for name in functions if "Raises" not in getattr(modgraph, name).__doc__] == []
