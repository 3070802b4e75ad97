"""Settings that say which axis something works along: by its name, or counted from the last."""

from __future__ import annotations

from typing import Any

from modgraph.declare.setting import setting
from modgraph.types import Misfit, TensorType, shown


def position_of(axis: int | str, type_: TensorType, who: str) -> int:
    """The place of an axis in a value, counted from the last (−1, −2, …). Raises `Misfit`."""
    rank = len(type_.shape)
    if isinstance(axis, int):
        if -axis <= rank:
            return axis
        advice = f"write {who}(axis=-1)" if rank else "it is a single number already"
        raise Misfit(f"there is no axis {axis} in {shown(type_.shape)}", advice)
    position = type_.position(axis)
    if position is None:
        names = [each.name for each in type_.shape if each.name]
        advice = "count from the last: axis=-1"
        advice = f"it has: {', '.join(names)}; or {advice}" if names else f"its axes have no names: {advice}"
        raise Misfit(f'there is no axis "{axis}" in {shown(type_.shape)}', advice)
    return position - rank


def axis_setting(default: int) -> Any:
    """The setting that says which axis an op works along."""
    return setting(default, max=-1, axis=True, doc="which axis, by name or counted from the last: -1, -2, …")
