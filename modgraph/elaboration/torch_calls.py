"""Reads a call that has the arguments of torch's layer, whose first are often sizes that modgraph infers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modgraph.declare import Setting
from modgraph.elaboration.entities import Entity

Argument = tuple[str | None, Any, str]  # its name if it has one, its value, the text of the value


@dataclass(frozen=True)
class TorchCall:
    """The call in the words of modgraph, the arguments that it infers, and the other names of settings by ours."""

    text: str
    inferred: tuple[str, ...]
    renamed: Mapping[str, str]

    def explain(self, callee: str) -> str:
        """Explain what differs: `linear infers in_features from its operand`."""
        parts = [f"{callee} infers {' and '.join(self.inferred)} from its operand"] if self.inferred else []
        parts += [f'"{name}" is called "{own}" here' for name, own in self.renamed.items()]
        return ", and ".join(parts)


@dataclass(frozen=True)
class Callee:
    """What is called, with its settings; `torch_arguments` are those of torch's layer, as a declaration writes them."""

    name: str
    settings: Mapping[str, Setting]
    torch_arguments: str


def read_torch_call(callee: Callee, arguments: Sequence[Argument]) -> TorchCall | None:
    """Read the arguments of a call as those of torch; None if they are ours, or of neither."""
    settings = callee.settings
    in_order = [value for name, value, _ in arguments if name is None]
    fits = len(in_order) <= len(settings) and all(map(_accepts, settings.values(), in_order))
    if fits and all(name is None or name in settings for name, _, _ in arguments):
        return None
    names = dict(each.split("=") for each in callee.torch_arguments.split())
    orders = ([*settings], [*names]) if fits else ([*names],)
    return next(filter(None, (_translate(callee, arguments, names, order) for order in orders)), None)


def _translate(
    callee: Callee, arguments: Sequence[Argument], names: Mapping[str, str], order: list[str]
) -> TorchCall | None:
    """Translate a call whose arguments without a name have this order; None if it is no sound call of torch."""
    settings, places = callee.settings, iter(order)
    inferred, renamed, found = list[str](), dict[str, str](), dict[str, tuple[Any, str, bool]]()
    for name, value, text in arguments:
        word = name or next(places, "")
        own = word if word in settings and (name or order == [*settings]) else names.get(word, word)
        if not own:
            inferred.append(word)
        elif own in found or own not in settings or not _accepts(settings[own], value):
            return None
        else:
            found[own] = value, text, name is None
            renamed |= {word: own} if name and own != word else {}
    lacking = any(setting.required and setting.name not in found for setting in settings.values())
    if lacking or not (inferred or renamed):
        return None
    return TorchCall(_write(callee.name, settings, found), tuple(filter(None, inferred)), renamed)


def _accepts(setting: Setting, value: Any) -> bool:
    if isinstance(value, Entity):
        return bool(setting.bounds["extent"] or setting.bounds["axis"])
    return setting.problem(value) is None


def _write(callee: str, settings: Mapping[str, Setting], found: Mapping[str, tuple[Any, str, bool]]) -> str:
    """Write the call: the first setting by place, others as they were given, behind a gap by name."""
    texts, by_place = list[str](), True
    for at, name in enumerate(settings):
        _, text, placed = found.get(name, (None, "", False))
        by_place = by_place and bool(text) and (placed or at == 0)
        texts += [text if by_place else f"{name}={text}"] if text else []
    return f"{callee}({', '.join(texts)})" if texts else callee
