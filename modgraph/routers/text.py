"""Routers that are written in the language, as a graph holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class RouterText:
    """A router that is written in the language: the name of its definition and its arguments, each with its value as a
    spec writes it, those that differ from their default and those that do not."""

    name: str
    given: tuple[tuple[str, str], ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """The router as a spec writes it."""
        written = ", ".join(f"{name}={value}" for name, value in self.given)
        return f"{self.name}({written})" if written else self.name


@dataclass(frozen=True)
class RouterFacts:
    """How a router decides: what a route's value has vectors for, along what it chooses (None: every module takes
    part), how many modules a sender reaches at most (0: any number), whether it wants a balance loss, whether it
    draws."""

    one_for_each: Literal["sender", "module", "pair"] = "sender"
    chooses_along: Literal["modules", "senders"] | None = None
    k: int = 0
    balanced: bool = False
    draws: bool = False
