"""The weights of a declaration: axes by pattern, and how they start."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Initial:
    """How a weight starts: `zeros`, `ones`, `constant`, `normal` or `uniform`; the scale is the value, the standard
    deviation, the bound."""

    kind: str
    scale: float = 1.0
    fan: str = ""  # axes whose product n makes the bound 1/√n

    def __str__(self) -> str:
        return f"{self.kind}({self.scale})"


ZEROS = Initial("zeros")
ONES = Initial("ones")


def constant(value: float) -> Initial:
    return Initial("constant", value)


def normal(deviation: float) -> Initial:
    return Initial("normal", deviation)


def uniform(fan: str) -> Initial:
    """U(−1/√n, 1/√n), n the product of the axes in `fan`; Kaiming-uniform with a = √5 is this with n the fan-in."""
    return Initial("uniform", fan=fan)


@dataclass(frozen=True)
class Weight:
    """A weight: its name in the state dict, its axes, how it starts.

    A `shared` weight belongs to a pool as a whole, others to each of its modules. A `buffer` is state that no
    gradient moves. `when` names settings without which the weight is absent, if one is false or not given.
    """

    name: str
    axes: str
    initial: Initial = ZEROS
    when: str = ""
    shared: bool = False
    buffer: bool = False
