"""Submodules and parameters whose names torch claims, such as `type` and `training`.

torch stores submodules and parameters as attributes, and every module already has these. Such a submodule or parameter
gets another attribute, and keeps its name in state dicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from torch import nn


class Named(nn.Module):
    """A module of submodules and parameters under any names."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        super().__init__()
        for name, each in named.items():
            (self._parameters if isinstance(each, nn.Parameter) else self._modules)[name] = each


def keep_names(module: nn.Module, attributes: Mapping[str, str]) -> None:
    """Make state dicts of a module use names; `attributes` maps names to attributes."""
    module.renamed = attributes  # type: ignore[assignment]
    module.register_state_dict_post_hook(partial(_rename, back=True))  # type: ignore[no-untyped-call]
    module.register_load_state_dict_pre_hook(_rename)  # type: ignore[no-untyped-call]


def _rename(module: nn.Module, state: dict[str, Any], prefix: str, *_: Any, back: bool = False) -> None:
    """Rename the first part of keys after a prefix, and keep their order."""
    others: Any = module.renamed
    if back:
        others = {attribute: name for name, attribute in others.items()}
    items = [*state.items()]
    state.clear()
    for key, value in items:
        first, dot, rest = key[len(prefix) :].partition(".")
        state[f"{prefix}{others.get(first, first)}{dot}{rest}" if key.startswith(prefix) else key] = value
