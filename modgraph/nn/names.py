"""Names of modules and weights that torch has another use for.

torch finds what stands in a module as its attributes, so that nothing can be called `type` or `training`, as every
module has such attributes of its own. What a model calls so stands under another attribute, and keeps its name in state
dicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn


def keep_names(module: nn.Module, attributes: Mapping[str, str]) -> None:
    """Let state dicts of a module have these names for what stands under these attributes."""
    module.renamed = attributes  # type: ignore[assignment]
    module.register_state_dict_post_hook(_saved)  # type: ignore[no-untyped-call]
    module.register_load_state_dict_pre_hook(_loaded)  # type: ignore[no-untyped-call]


def _saved(module: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    attributes: Any = module.renamed
    _rename(state, prefix, {attribute: name for name, attribute in attributes.items()})


def _loaded(module: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    attributes: Any = module.renamed
    _rename(state, prefix, attributes)


def _rename(state: dict[str, Any], prefix: str, others: Mapping[str, str]) -> None:
    """Other names, directly behind a prefix, for what a state dict holds; its order stays."""
    found = {_renamed(key, prefix, others): value for key, value in state.items()}
    state.clear()
    state.update(found)


def _renamed(key: str, prefix: str, others: Mapping[str, str]) -> str:
    if not key.startswith(prefix):
        return key
    first, dot, rest = key[len(prefix) :].partition(".")
    return f"{prefix}{others.get(first, first)}{dot}{rest}"
