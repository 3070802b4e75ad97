"""Settings drawn from what a declaration says they may be."""

from __future__ import annotations

from random import Random
from typing import Any

from modgraph.declare import Declaration, Setting, format_value

SMALL = (1, 2, 2, 3, 4, 4, 6, 8)
AXES = ("first", "time", "p", "third")


def sample_settings(declaration: type[Declaration], rng: Random) -> dict[str, Any]:
    """The settings without a default, and some of the others."""
    return {
        name: _value(setting, rng)
        for name, setting in declaration.settings().items()
        if setting.required or rng.random() < 0.25
    }


def written(name: str, settings: dict[str, Any]) -> str:
    """An op or router with its settings, as a spec has it."""
    given = ", ".join(f"{key}={format_value(value)}" for key, value in settings.items())
    return f"{name}({given})" if given else name


def _value(setting: Setting, rng: Random) -> Any:
    low, high = setting.bounds.get("min"), setting.bounds.get("max")
    if tuple in setting.kinds:
        words = AXES if str in setting.items else SMALL
        return tuple(setting.items[0](rng.choice(words)) for _ in range(rng.randint(1, 3)))
    if bool in setting.kinds:
        return rng.random() < 0.5
    if setting.bounds["axis"] and (int not in setting.kinds or rng.random() < 0.3):
        return rng.choice(AXES)
    if str in setting.kinds and setting.bounds["choices"]:
        return rng.choice(setting.bounds["choices"])
    if setting.kinds == (str,):
        return rng.choice(AXES)
    if float in setting.kinds:
        return rng.choice((0.001, 0.1, 0.5, 0.9)) + (low or 0) * (high is None)
    if high is not None and low is None:
        return high - rng.randrange(3)
    return max(low if low is not None else 0, rng.choice(SMALL) - rng.randrange(2))
