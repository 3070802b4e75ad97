"""What the graph of a bundle does not know of it: words for classes and tokens, and how inputs are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from modgraph.backends.errors import BadExamples
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph
from modgraph.types import TensorType


@dataclass(frozen=True)
class Description:
    """What the graph does not know: names of classes by target, and by input how it is made from what is measured and
    which words its ids stand for."""

    classes: dict[str, list[str]] = field(default_factory=dict)
    preprocessing: dict[str, Any] = field(default_factory=dict)
    words: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any] | None, graph: Graph) -> Description:
        """A description that fits a graph; what it tells of other targets and inputs is left out.

        Raises `ModgraphError`.
        """
        found = dict(given or {})
        classes = _names(found.get("classes", {}), graph.target_types, "classes")
        words = _names(found.get("words", {}), graph.input_types, "words")
        return cls(classes, dict(found.get("preprocessing", {})), words)


def _names(given: Mapping[str, Any], types: Mapping[str, TensorType], what: str) -> dict[str, list[str]]:
    """A name for each value of some inputs or targets. Raises `ModgraphError`."""
    found = {name: [*map(str, names)] for name, names in given.items() if name in types}
    for name, names in found.items():
        if types[name].of:  # classes that are still to come have names already
            names = found[name] = names[: types[name].size]
        if types[name].size != len(names):
            reason = f'the description names {len(names)} {what} of "{name}", which is {types[name]}'
            raise ModgraphError([BadExamples(reason=reason)])
    return found
