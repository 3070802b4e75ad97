"""Finds ops and routers by name, those of extensions included, and suggests names for unknown ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from modgraph.diagnostics import closest, did_you_mean, nearest
from modgraph.ops import Op
from modgraph.ops.idioms import IDIOMS
from modgraph.prelude import Written, blocks, routers
from modgraph.routers import Router

OPS = Op.registry
find_op = OPS.find
find_router = Router.registry.find


def is_router(name: str) -> bool:
    """Whether a name is that of a kind of router, built-in ones of the language included."""
    return name in routers() or find_router(name) is not None


def list_router_names() -> list[str]:
    """List the names of all kinds of routers."""
    return sorted({*Router.registry, *routers()})


ALMOST_EQUAL = 0.8
ONE_LETTER = 0.74  # the similarity of words of four letters that differ in one; less similar names may be other words


def suggest_op(name: str, in_scope: Iterable[str]) -> str:
    """Write the help line for an unknown op: its most likely meaning, names in scope before ops."""
    here = list(in_scope)
    match = closest(name, here, ALMOST_EQUAL)
    if match is not None:
        return f'did you mean "{match}"?'
    if name in Router.registry or name in routers():
        return f"it is a router: declare it, router r = {name}, and write x -> pool by r"
    if known := _idiom(name) or _other_word(name, _list_callables()):
        return known
    match = closest(name, [*here, *_list_callables()], ONE_LETTER)
    holds_more = match is not None and len(name) > len(match) + 1 and match in name.lower()  # as masked_mean does
    if match is not None and not holds_more:
        return f'did you mean "{match}"?'
    declared = f"declared here: {', '.join(nearest(name, here))}; " if here else ""
    return f"{declared}all ops: modgraph explain"


def suggest_value(name: str, in_scope: Iterable[str]) -> str:
    """Write the help line for an unknown name: names in scope, or a synonym of an op."""
    here = list(in_scope)
    if closest(name, here) is not None or not here:
        return did_you_mean(name, here)
    exactly = _other_word(name, _list_callables(), misspelt=False)
    return _idiom(name) or exactly or did_you_mean(name, here, "known here: {known}")


def suggest_router(name: str, here: Iterable[str]) -> str:
    """Write the help line for an unknown router: those of the file come first."""
    match = closest(name, list(here))
    if match is not None:
        return f'did you mean "{match}"?'
    return _other_word(name, _routers()) or did_you_mean(name, list_router_names(), "routers are: {known}")


def suggest_synonym(name: str) -> str | None:
    """Write the help line for a synonym of an op or a router, or for an idiom of another library."""
    return _idiom(name) or _other_word(name, _list_callables()) or _other_word(name, _routers())


def list_meant_ops(name: str) -> list[str]:
    """List the ops that a word may mean: the one with that synonym, and all statistics of routers if it is one."""
    meant = {each.name for each in _list_callables().values() if _plain(name) in map(_plain, each.synonyms)}
    statistics = {op.name for op in OPS.values() if op.reads != Op.reads}
    return sorted(meant | statistics if meant & statistics else meant)


def _idiom(name: str) -> str | None:
    """Write the help line for an idiom of another library."""
    idiom = next((idiom for idiom in IDIOMS if _plain(name) in map(_plain, idiom.words)), None)
    return idiom.help(name) if idiom is not None else None


def _list_callables() -> dict[str, type[Op] | Written]:
    """List what applies to values: ops, and blocks in the language."""
    return {**OPS, **blocks()}


def _routers() -> dict[str, type[Router] | Written]:
    return {**Router.registry, **routers()}


def _other_word(name: str, known: Mapping[str, Any], misspelt: bool = True) -> str | None:
    """Write the help line for a synonym of a known declaration, perhaps misspelt."""
    words = {word: each for each in known.values() for word in each.synonyms}
    exact = {_plain(word): each for word, each in words.items()} | {_plain(each): known[each] for each in known}
    found = exact.get(_plain(name))
    if found is None and misspelt and closest(name, known) is None:
        word = closest(name, words, ALMOST_EQUAL)
        found = words[word] if word is not None else None
    return f'it is called "{found.name}" here' if found is not None else None


def _plain(word: str) -> str:
    return word.lower().replace("_", "")
