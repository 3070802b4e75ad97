"""Choices that routes are told to make, instead of making their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

import torch
from torch import Tensor

Choices = Mapping[str, Tensor]

DRAW = -1  # in the place of a module's number: draw it from the router's distribution

_choices: ContextVar[Choices] = ContextVar("choices", default=MappingProxyType({}))


@contextmanager
def choosing(choices: Choices) -> Iterator[None]:
    """Within it, the routes named here choose so: modules [B, ..., N, K] for K slots, `DRAW` where it is left to them.

    A route in a scan takes [B, T, ..., N, K], each step its own.
    """
    token = _choices.set({**_choices.get(), **choices})
    try:
        yield
    finally:
        _choices.reset(token)


def choice_of(route: str) -> Tensor | None:
    """What a route is told to choose here, if anything; a graph that is exported makes its own choices."""
    if torch.compiler.is_exporting():
        return None
    return _choices.get().get(route)
