"""Writes the reference of the Python API from its docstrings: python docs/python_reference.py."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import modgraph

MOST = 100  # columns
PUBLIC_TYPES = {
    "Holder": "Program | Run | str | Path",
    "HasArchitecture": "Program | Run",
    "StoredRun": "Run",
    "Conditions": "str | Mapping[str, Any] | Sequence[str]",
}
PAGE = Path(__file__).parent / "python.md"
HEAD = """# The Python API

Everything public is a name of `modgraph`. It is imported when it is first used, so `import modgraph` costs nothing. A
mistake in a spec, a recipe or data raises `ModgraphError`, which prints each mistake with its place and a way out; a
value of another kind raises `TypeError`. [Use modgraph from Python](guides/python.md) shows data sets, callbacks, loops
and blocks of your own.

This page is generated from the docstrings: `python docs/python_reference.py`.
"""
# each part with its names; a class with its public members
PARTS: dict[str, dict[str, str]] = {
    "Read specs": {
        "load": "",
        "loads": "",
        "Program": "cost memory reads build diff visualize pytorch_source",
        "Cost": "counts nodes as_table as_json",
    },
    "Compare and draw": {
        "diff": "",
        "Comparison": "is_different as_json",
        "visualize": "",
        "Drawing": "write",
    },
    "Train": {
        "train": "",
        "Callback": "on_begin on_step on_epoch on_end",
        "Step": "loss",
        "Epoch": "",
        "migrate": "",
    },
    "Read runs": {
        "load_run": "",
        "Run": "metrics history model evaluate trace export predict resume diff visualize checkpoint",
        "Trace": "as_records as_npz",
    },
    "Train and read many runs": {
        "sweep": "",
        "runs": "",
        "Runs": "where sort best list table tables frame load write_page",
        "RunFacts": "find",
        "Table": "list_records to_markdown",
    },
    "Ship": {"export": "", "predict": "", "Predictions": "to_csv"},
    "Models in torch": {
        "Model": "forward compute",
        "Computed": "loss",
        "block": "",
        "Block": "forward compute losses loss program pytorch_source",
    },
    "Mistakes": {"ModgraphError": ""},
}


def write_page() -> str:
    """Write the page."""
    parts = [HEAD]
    for title, names in PARTS.items():
        parts.append(f"## {title}\n")
        for name, members in names.items():
            parts += describe_name(name, getattr(modgraph, name), members.split())
    return "\n".join(parts)


def describe_name(name: str, value: Any, members: list[str]) -> Iterator[str]:
    """Describe a function, or a class with its members."""
    yield f"### `modgraph.{name}`\n"
    if not inspect.isclass(value):
        yield from [write_signature(f"modgraph.{name}", value), docstring(value)]
        return
    yield docstring(value)
    for member in members:
        found = inspect.getattr_static(value, member)
        if isinstance(found, property | cached_property):
            yield f"#### `{name}.{member}`\n"
        else:
            yield f"#### `{name}.{member}()`\n"
            yield write_signature(member, found, of_method=True)
        yield docstring(found)


def write_signature(name: str, function: Any, of_method: bool = False) -> str:
    """Write a signature, with types as in the source."""
    found = inspect.signature(function)
    parameters = [*write_parameters([*found.parameters.values()][of_method:])]
    line = f"{name}({', '.join(parameters)}) -> {found.return_annotation}"
    if len(line) > MOST:
        inner = "".join(f"    {each},\n" for each in parameters)
        line = f"{name}(\n{inner}) -> {found.return_annotation}"
    for inner_name, known in PUBLIC_TYPES.items():
        line = re.sub(rf"\b{inner_name}\b", known, line)
    return f"```text\n{line}\n```\n"


def write_parameters(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Write the parameters of a function, with `/` and `*`."""
    before: Any = None
    for each in parameters:
        if before is each.POSITIONAL_ONLY and each.kind is not before:
            yield "/"
        if each.kind is each.KEYWORD_ONLY and before not in (each.KEYWORD_ONLY, each.VAR_POSITIONAL):
            yield "*"
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        default = "" if each.default is each.empty else f" = {each.default!r}"
        yield f"{stars}{each.name}: {each.annotation}{default}"
        before = each.kind


def docstring(value: Any) -> str:
    """Return the docstring of a value, one line for each paragraph."""
    text = inspect.getdoc(value.func if isinstance(value, cached_property) else value) or ""
    paragraphs = [" ".join(each.split()) for each in text.split("\n\n")]
    return "\n\n".join(paragraphs) + "\n"


if __name__ == "__main__":
    PAGE.write_text(write_page())
