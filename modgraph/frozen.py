"""Frozen dataclasses that share the methods of a base class.

`dataclass(frozen=True)` compiles six methods for every class. For hundreds of declarations, that takes longer than the
rest of a command's start.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, fields
from operator import itemgetter
from typing import Any, ClassVar, NoReturn, TypeVar, cast

T = TypeVar("T")


class FrozenData:
    """Turns every subclass into a frozen dataclass with keyword-only fields."""

    _compared: ClassVar[Any] = staticmethod(lambda values: ())
    _fields: ClassVar[tuple[Field[Any], ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__doc__ = cls.__doc__ or cls.__name__  # else dataclass generates one from the signature
        dataclass(init=False, repr=False, eq=False, match_args=False)(cls)
        cls._fields = fields(cast(Any, cls))
        compared = [field.name for field in cls._fields if field.compare]
        if compared:
            cls._compared = staticmethod(itemgetter(*compared))

    def __init__(self, **given: Any) -> None:
        values = vars(self)
        for field in self._fields:
            name = field.name
            if name in given:
                values[name] = given.pop(name)
            elif field.default is not MISSING:
                values[name] = field.default
            elif field.default_factory is not MISSING:
                values[name] = field.default_factory()
            else:
                raise TypeError(f"{type(self).__name__} needs {name}")
        if given:
            raise TypeError(f"{type(self).__name__} takes no {', '.join(given)}")

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return bool(self._compared(vars(self)) == self._compared(vars(other)))

    def __hash__(self) -> int:
        return hash(self._compared(vars(self)))

    def __repr__(self) -> str:
        texts = [f"{each.name}={vars(self)[each.name]!r}" for each in self._fields if each.repr]
        return f"{type(self).__qualname__}({', '.join(texts)})"


def replace_fields(value: T, **others: Any) -> T:
    """Copy a frozen value with other fields: a `dataclasses.replace` without checks or `__post_init__`, six times as
    fast."""
    found = object.__new__(type(value))
    vars(found).update(vars(value), **others)
    return found


def change_fields(value: T, **others: Any) -> T:
    """Like `replace_fields`, but the value itself if its fields are equal already."""
    now = vars(value)
    return value if all(now[name] == other for name, other in others.items()) else replace_fields(value, **others)
