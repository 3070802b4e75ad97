"""Errors of invalid graphs."""

from __future__ import annotations


class InvalidGraph(ValueError):
    """A graph that contradicts its declarations. `node` and `field` locate the fault, if it has one place."""

    def __init__(self, reason: str, node: str = "", field: str = "") -> None:
        where = [f'node "{node}"'] * bool(node) + [f'field "{field}"'] * bool(field)
        super().__init__(f"{', '.join(where)}: {reason}" if where else reason)
        self.reason = reason
        self.node = node
        self.field = field


class UnreadableGraph(InvalidGraph):
    """Stored data that describe no graph of this version."""


def ask(holds: bool, reason: str, node: str = "", field: str = "") -> None:
    """Raise `InvalidGraph` with the reason unless a condition is true."""
    if not holds:
        raise InvalidGraph(reason, node, field)
