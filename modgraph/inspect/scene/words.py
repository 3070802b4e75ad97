"""Declarations and spans in words."""

from __future__ import annotations

import re
from collections.abc import Mapping

from modgraph.declare import Declaration, shown_value
from modgraph.inspect.scene.values import Lines
from modgraph.ir import Node
from modgraph.routers import RouterText


def help_of(declaration: Declaration) -> str:
    return (declaration.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " ")


def brief_text(router: RouterText) -> str:
    """A router as a spec writes it, numbers to four digits."""
    return str(RouterText(router.name, tuple((name, _digits(value)) for name, value in router.given)))


def brief(declaration: Declaration) -> str:
    """A declaration with its settings, numbers to four digits."""
    values = {name: f"{v:.4g}" if isinstance(v, float) else shown_value(v) for name, v in declaration.values().items()}
    given = ", ".join(f"{name}={value}" for name, value in values.items())
    return f"{declaration.name}({given})" if given else declaration.name


def _digits(written: str) -> str:
    """A value, a number with four digits."""
    return f"{float(written):.4g}" if re.fullmatch(r"-?\d+\.\d*(e-?\d+)?", written) else written


def settings_of(declaration: Declaration) -> tuple[tuple[str, str], ...]:
    return shown({name: getattr(declaration, name) for name in declaration.settings()})


def shown(values: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple((name, shown_value(value)) for name, value in values.items())


def shape_of(axes: tuple[object, ...]) -> str:
    return f"[{', '.join(map(str, axes))}]"


def lines_of(node: Node) -> Lines | None:
    if node.span is None:
        return None
    source, start, end = node.span.source, node.span.start, node.span.end
    first, last = source.position(start)[0], source.position(max(start, end - 1))[0]
    return Lines(source.label, start, end, first, last)
