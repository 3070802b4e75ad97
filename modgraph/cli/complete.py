"""What can follow in an unfinished command line: commands, options, files, parameters of a spec, keys of a recipe."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from modgraph.cli.main import COMMANDS, find_parser, summary_of

Candidates = Iterator[tuple[str, str]]  # words, each with what it means
SUFFIXES = {
    "SPEC": ".mod",
    "BUNDLE": ".onnx",
    "CHECKPOINT": ".safetensors",
    "MODEL.ONNX": ".onnx",
    "X.NPZ": ".npz",
    "RUN": "",
    "DIR": "",
    "FOLDER": "",
}


def complete(words: Sequence[str]) -> Candidates:
    """What can stand in the place of the last word, which may be empty."""
    *before, current = words or [""]
    found = _suggest(before, current)
    return ((word, meaning) for word, meaning in found if word.startswith(current))


def _suggest(before: Sequence[str], current: str) -> Candidates:
    name = next((word for word in before if word in COMMANDS), None)
    if name is None:
        yield from ((each, summary_of(each)) for each in COMMANDS)
        yield from (("--help", "describe the commands"), ("--version", "print the version"))
        return
    actions = find_parser(name)._actions
    flags = {flag: action for action in actions for flag in action.option_strings}
    option = flags.get(before[-1])
    if option is not None and option.nargs != 0:
        yield from _values(option, before, current)
    elif current.startswith("-"):
        yield from ((flag, action.help or "") for flag, action in flags.items())
    else:
        for action in actions:
            if not action.option_strings:
                yield from _values(action, before, current)


def _values(action: argparse.Action, before: Sequence[str], current: str) -> Candidates:
    if action.choices is not None:
        yield from ((str(each), "") for each in action.choices)
    elif action.dest.startswith("set"):
        yield from (_recipe_keys(current) if "." in current else _parameters(before))
    else:
        yield from _files(current, str(action.metavar or "FILE"))


def _files(current: str, metavar: str) -> Candidates:
    """Folders, and the files that an argument takes: any, where its name does not say which."""
    kinds = [SUFFIXES.get(kind) for kind in metavar.upper().split("|")]
    suffixes = tuple(filter(None, kinds))
    folder, _, start = current.rpartition("/")
    try:
        entries = sorted(os.scandir(f"{folder}/" if "/" in current else "."), key=lambda each: each.name)
    except OSError:
        return
    for entry in entries:
        if not entry.name.startswith(start) or (entry.name.startswith(".") and not start):
            continue
        path = f"{folder}/{entry.name}" if "/" in current else entry.name
        if entry.is_dir():
            yield f"{path}/", ""
        elif entry.name.endswith(suffixes) if suffixes else None in kinds:
            yield path, ""


def _parameters(before: Sequence[str]) -> Candidates:
    """The parameters of the specs in a command line."""
    from modgraph.diagnostics import Report
    from modgraph.syntax import parse, read

    for path in (word for word in before if Path(word).suffix == ".mod"):
        report = Report()
        source = read(path, report)
        file = None if source is None else parse(source, report)
        for model in () if file is None else file.models:
            yield from ((f"{each.name}=", f"a parameter of {model.name}") for each in model.parameters)


def _recipe_keys(current: str) -> Candidates:
    from modgraph.training.sections import Start, Train

    for section, kind in (("train", Train), ("start", Start)):
        for each in kind.settings().values():
            yield f"{section}.{each.name}=", each.bounds.get("doc") or ""
