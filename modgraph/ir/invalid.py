"""What is said of a graph that is none."""

from __future__ import annotations


class InvalidGraph(ValueError):
    """A graph that is not what its declarations say; `node` and `field` tell where, if it is in one place."""

    def __init__(self, reason: str, node: str = "", field: str = "") -> None:
        where = [f'node "{node}"'] * bool(node) + [f'field "{field}"'] * bool(field)
        super().__init__(f"{', '.join(where)}: {reason}" if where else reason)
        self.reason = reason
        self.node = node
        self.field = field


class UnreadableGraph(InvalidGraph):
    """What is stored describes no graph that this version knows."""


def ask(holds: bool, reason: str, node: str = "", field: str = "") -> None:
    """Raises `InvalidGraph` for the reason where something does not hold."""
    if not holds:
        raise InvalidGraph(reason, node, field)
