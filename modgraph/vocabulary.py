"""Looks up ops and routers by name: this package's, and those of packages that extend it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from modgraph.diagnostics import closest, did_you_mean, nearest
from modgraph.ops import Op
from modgraph.ops.idioms import IDIOMS
from modgraph.routers import Router
from modgraph.routers.prelude import Written, definitions

OPS = Op.registry
find_op = OPS.find
find_router = Router.registry.find


def is_router(name: str) -> bool:
    """Whether a name is that of a kind of router, one that the language defines included."""
    return name in definitions() or find_router(name) is not None


def router_names() -> list[str]:
    """Every kind of router by name."""
    return sorted({*Router.registry, *definitions()})


ALMOST_EQUAL = 0.8
ONE_LETTER = 0.74  # as alike as words of four letters that differ in one; less alike names may be other words


def op_meant(name: str, in_scope: Iterable[str]) -> str:
    """The help line for a name that stands for no op: what it most likely means, things in scope before ops."""
    here = list(in_scope)
    match = closest(name, here, ALMOST_EQUAL)
    if match is not None:
        return f'did you mean "{match}"?'
    if name in Router.registry or name in definitions():
        return f"it is a router: declare it, router r = {name}, and write x -> pool by r"
    if known := _idiom(name) or _other_word(name, OPS):
        return known
    match = closest(name, [*here, *OPS], ONE_LETTER)
    holds_more = match is not None and len(name) > len(match) + 1 and match in name.lower()  # as masked_mean does
    if match is not None and not holds_more:
        return f'did you mean "{match}"?'
    declared = f"declared here: {', '.join(nearest(name, here))}; " if here else ""
    return f"no op is called so; {declared}all ops: modgraph explain"


def value_meant(name: str, in_scope: Iterable[str]) -> str:
    """The help line for a name that stands for nothing: what is in scope, or another word for an op."""
    here = list(in_scope)
    if closest(name, here) is not None or not here:
        return did_you_mean(name, here)
    exactly = _other_word(name, OPS, misspelt=False)
    return _idiom(name) or exactly or did_you_mean(name, here, "known here: {known}")


def router_meant(name: str, here: Iterable[str]) -> str:
    """The help line for a name that is no router: those that a file defines come first."""
    match = closest(name, list(here))
    if match is not None:
        return f'did you mean "{match}"?'
    return _other_word(name, _routers()) or did_you_mean(name, router_names(), "routers are: {known}")


def other_word(name: str) -> str | None:
    """The help line for another word of the field for an op or a router, or for what is written otherwise."""
    return _idiom(name) or _other_word(name, OPS) or _other_word(name, _routers())


def _idiom(name: str) -> str | None:
    """The help line for a name from another library."""
    idiom = next((idiom for idiom in IDIOMS if _plain(name) in map(_plain, idiom.words)), None)
    return idiom.help(name) if idiom is not None else None


def _routers() -> dict[str, type[Router] | Written]:
    return {**Router.registry, **definitions()}


def _other_word(name: str, known: Mapping[str, Any], misspelt: bool = True) -> str | None:
    """The help line for another word of the field for what has synonyms, perhaps misspelt."""
    words = {word: each for each in known.values() for word in each.synonyms}
    exact = {_plain(word): each for word, each in words.items()} | {_plain(each): known[each] for each in known}
    found = exact.get(_plain(name))
    if found is None and misspelt and closest(name, known) is None:
        word = closest(name, words, ALMOST_EQUAL)
        found = words[word] if word is not None else None
    return f'it is called "{found.name}" here' if found is not None else None


def _plain(word: str) -> str:
    return word.lower().replace("_", "")
