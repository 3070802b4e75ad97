"""What `explain` knows besides the vocabulary: the keys of recipes, the commands, and the index of all by subject."""

from __future__ import annotations

import argparse
import inspect
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from modgraph.cli.main import COMMANDS, GROUPS, find_parser, summary_of
from modgraph.declare import Setting
from modgraph.diagnostics import Diagnostic
from modgraph.inspect.reference import registries, setting_line
from modgraph.ops import Op
from modgraph.prelude import blocks, routers
from modgraph.recipes.schema import Named, Section
from modgraph.routers import Router
from modgraph.syntax import keywords

MESSAGES = {
    "1": "commands, files, syntax",
    "2": "names and arguments of a spec",
    "3": "types and shapes",
    "4": "cautions about a spec",
    "5": "recipes, data, predictions",
    "6": "data of a run, runs, checkpoints",
    "7": "training, export",
    "8": "traces, diff, migrate, pages, Python",
    "9": "tables of runs",
}
BAR = r"\|"  # in a table of Markdown
LOSSES = "loss"  # the file of ops that are losses
SUBJECTS = {"dot_product": "attention", "rotary": "attention", "lookup": "ids", "neighbours": "sequence"}  # of files
WIDTH, INDENT = 110, 16


@dataclass(frozen=True)
class Key:
    """A key of recipes by its dotted path, with what it takes: a plain value, a section, or one of several kinds."""

    path: str
    setting: Setting
    section: type[Section] | None = None
    of_each: bool = False  # a section for each name: of each target, input or state

    def line(self) -> str:
        """Its name and what it takes."""
        if self.section is None:
            return setting_line(self.setting)
        what = f"one of {_join(self.section)}" if issubclass(self.section, Named) else "a mapping"
        return f"    {self.setting.name}: {what}"

    def page(self) -> str:
        """What it means, what it takes, and how it is written."""
        lines = [f"{self.path}: a key of recipes", ""]
        if self.section is None:
            lines.append(setting_line(self.setting).replace(f"{self.setting.name}: ", "", 1))
            if not self.setting.required:
                lines.append(f"    {_plain(self.setting.default)} where it is not given")
        elif issubclass(self.section, Named):
            about = self.setting.bounds.get("doc", "")
            lines += [textwrap.fill(about, 110, initial_indent="    ", subsequent_indent="    ")] * bool(about)
            lines.append(f"    one of {_join(self.section)}; modgraph explain NAME describes one")
        else:
            lines.append(textwrap.indent(inspect.cleandoc(self.section.__doc__ or ""), "    "))
            lines += ["", *map(setting_line, self.section.settings().values())]
        start, *rest = self.path.split(".")
        inside = "…" if self.section is None or issubclass(self.section, Named) else "{…}"
        for name in reversed(rest):
            inside = f"{{{name}: {inside}}}"
        lines += ["", f"    written {start}: {inside}"]
        if inside.count("{") == len(rest) and not self.of_each:
            lines[-1] += f", or for one training -s {self.path}=…"
        return "\n".join(lines)


def recipe_keys() -> dict[str, Key]:
    """Every key of the sections `start` and `train`, by its dotted path; those of data sets, optimizers and the like
    stand on their own pages."""
    from modgraph.training.sections import Start, Train

    return {key.path: key for name, kind in (("start", Start), ("train", Train)) for key in _keys_of(kind, name)}


def _keys_of(kind: type[Section], path: str, of_each: bool = False) -> Iterator[Key]:
    hints = typing.get_type_hints(kind)
    for name, setting in kind.settings().items():
        section, each = _section_in(hints[name])
        here = f"{path}.{name}.NAME" if each and section is not None else f"{path}.{name}"
        yield Key(here, setting, section, of_each or each)
        if section is not None and not issubclass(section, Named):
            yield from _keys_of(section, here, of_each or each)


def _section_in(hint: Any) -> tuple[type[Section] | None, bool]:
    """The section that a field holds, and whether it holds one for each of several names."""
    for option in typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,):
        if typing.get_origin(option) is Mapping:
            return _section_in(typing.get_args(option)[1])[0], True
        if isinstance(option, type) and issubclass(option, Section):
            return option, False
    return None, False


def _join(kind: type[Named]) -> str:
    return ", ".join(sorted(kind.registry))


def _plain(value: Any) -> str:
    return (
        {None: "null", True: "true", False: "false"}.get(value, str(value))
        if not isinstance(value, float)
        else f"{value:g}"
    )


def explain_key(name: str) -> str | None:
    """The pages of the keys whose path is a name, or ends in it; of a section of recipes, all its keys."""
    from modgraph.training.sections import Start, Train

    sections: dict[str, type[Section]] = {"start": Start, "train": Train}
    pages = []
    if name in sections:
        keys = [
            key
            for path, key in recipe_keys().items()
            if path.startswith(f"{name}.") and path.replace(".NAME", "").count(".") == 1
        ]
        about = inspect.cleandoc(sections[name].__doc__ or "")
        pages.append("\n".join([f"{name}: a section of recipes", "", f"    {about}", "", *map(Key.line, keys)]))
    plain = {path.replace(".NAME", ""): key for path, key in recipe_keys().items()}
    pages += [key.page() for path, key in plain.items() if path == name or path.endswith(f".{name}")]
    return "\n\n".join(pages) or None


def explain_data_key(name: str) -> str | None:
    """The page of the section `data`, or of a key of it by its path: the data sets that have it."""
    from modgraph.data import DataSet

    section, dot, key = name.partition(".")
    if section != "data":
        return None
    if not dot or key == "name":
        lines = [f"{name}: the data set of a recipe" if dot else "data: a section of recipes", ""]
        lines += [f"    one of {_join(DataSet)}", "", "    modgraph explain NAME describes one"]
        return "\n".join([*lines, "    written data: {name: npz, train: toy.npz}"])
    having = {each.name: each.settings()[key] for each in DataSet.registry.every() if key in each.settings()}
    lines = [f"of {each}: {setting_line(setting).strip()}" for each, setting in having.items()]
    return "\n".join([f"{name}: a key of recipes", "", *(f"    {line}" for line in lines)]) if lines else None


def explain_command(name: str) -> str | None:
    """The help of a command."""
    if name not in COMMANDS:
        return None
    return f"modgraph {name}: a command\n\n{find_parser(name).format_help().rstrip()}"


def overview() -> str:
    """All that can be explained, by subject."""
    ops: dict[str, list[str]] = {}
    for name, op in sorted(Op.registry.items()):
        file = op.__module__.rpartition(".")[2]
        ops.setdefault(SUBJECTS.get(file, file), []).append(name)
    for name in blocks():
        ops[name] = sorted([*ops.get(name, []), name])
    losses = ops.pop(LOSSES)
    keys = recipe_keys()
    lines = [
        "modgraph explain WORD explains any of these: ops, routers, keys, commands; modgraph explain MG202 a message."
    ]
    lines += ["", "the language:", _list("words", keywords())]
    lines += ["", "ops:", *(_list(kind.replace("_", " "), names) for kind, names in sorted(ops.items()))]
    lines += ["", _list("losses", losses), _list("routers", sorted({*Router.registry, *routers()}))]
    lines += ["", "recipes:"]
    for section in ("start", "train"):
        own = [path.split(".")[1] for path in keys if path.startswith(f"{section}.")]
        lines.append(_list(section, dict.fromkeys(own)))
    lines += [_list(f"{each.kind}s", sorted(each)) for each in registries()[2:]]
    lines += ["", "commands:", *(_list(group, names.split(), 26) for group, names in GROUPS.items())]
    counts = dict.fromkeys(MESSAGES, 0)
    for code in Diagnostic.catalogue:
        counts[code[2]] += 1
    every = [f"MG{hundred}xx {what} ({counts[hundred]})" for hundred, what in MESSAGES.items()]
    return "\n".join([*lines, "", _list("messages", every)])


def _list(title: str, names: typing.Iterable[str], indent: int = INDENT) -> str:
    start = f"  {title:{indent - 2}}"
    return textwrap.fill(", ".join(names), WIDTH, initial_indent=start, subsequent_indent=" " * indent)


def write_commands() -> str:
    """The reference of commands, as Markdown."""
    lines = [
        "# Commands",
        "",
        "Generated from the commands: `modgraph explain --commands > docs/commands.md`.",
        "",
        "A command exits with 0 when it is done, 1 where the input or the usage is at fault, 2 where `diff` finds a",
        "difference, 3 for a fault of modgraph, and 130 after Ctrl-C. Results go to standard output, messages to",
        "standard error. Every command takes `-q` (only results and errors), `-v` (also what is read, written and",
        "found) and `--help`.",
    ]
    for group, names in GROUPS.items():
        lines += ["", f"## {group[0].upper()}{group[1:]}"]
        for name in names.split():
            lines += ["", *_write_command(name)]
    return "\n".join(lines)


def _write_command(name: str) -> Iterator[str]:
    usage = import_module(f"modgraph.cli.{name}_command").USAGE
    yield from (f"### {name}", "", summary_of(name), "", "```sh", *usage, "```", "")
    yield from ("| argument | meaning |", "|---|---|")
    for action in find_parser(name)._actions:
        if action.dest not in ("help", "quiet", "verbose") and action.help != argparse.SUPPRESS:
            takes = action.metavar or "|".join(map(str, action.choices or ()))
            given = "" if action.nargs == 0 else f" {takes}"
            called = " ".join(f"`{flag}{given}`" for flag in action.option_strings) or f"`{takes}`"
            yield f"| {called.replace('|', BAR)} | {(action.help or '').replace('|', BAR)} |"
