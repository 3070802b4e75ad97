"""How `print(model)` shows a model: like its spec, what is the same several times once."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby

from torch import nn


def show(module: nn.Module, bare: type[nn.Module]) -> str:
    """A module with its own arrays and what is below it. One of class `bare` with a single thing below it is part of
    the name of that."""
    lines = [line for names, shown in entries(module, bare) for line in f"({names}): {shown}".splitlines()]
    name = type(module).__name__
    return "\n".join([f"{name}(", *textwrap.indent("\n".join(lines), "  ").splitlines(), ")"]) if lines else f"{name}()"


def entries(module: nn.Module, bare: type[nn.Module]) -> list[tuple[str, str]]:
    """What stands directly below a module, by its names: rounds that are the same together, in which `#` is the key."""
    members, key = getattr(module, "members", ()), getattr(module, "key", "")
    same: dict[tuple[str, str], list[str]] = {}
    for name, child in module.named_children():
        inner = entries(child, bare) if type(child) is bare else []
        below, shown = (f".{inner[0][0]}", inner[0][1]) if len(inner) == 1 else ("", repr(child))
        if name in members and (below + ".").startswith(f".{key}."):
            below = f".#{below.removeprefix(f'.{key}')}"
        own = "" if name.isdigit() or "\n" in shown else name  # layers of one kind stay apart
        same.setdefault((own, f"{below}: {shown}"), []).append(name)
    found = [(name, f"Parameter{[*each.shape]}") for name, each in module.named_parameters(recurse=False)]
    for (_, said), names in same.items():
        below, _, shown = said.partition(": ")
        found.append((f"{in_ranges(names)}{below}", shown if len(names) == 1 else f"{len(names)} x {shown}"))
    return found


def in_ranges(names: Sequence[str]) -> str:
    """Names in a row, numbers that rise by one as a range: `0-7, 9`."""
    if not all(name.isdigit() for name in names):
        return ", ".join(names)
    runs = [[name for _, name in run] for _, run in groupby(enumerate(names), lambda pair: int(pair[1]) - pair[0])]
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
