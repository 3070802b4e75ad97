"""The outputs of a model that a bundle is to have, by their names or by patterns."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from modgraph.backends.errors import UnknownOutput
from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.ir import Graph, comparisons


@dataclass(frozen=True)
class LeftOut:
    """What a model has and a bundle of some of its outputs lacks: those outputs, and the inputs and targets that only
    they go with."""

    outputs: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()

    @classmethod
    def of(cls, trained: Graph, inference: Graph) -> LeftOut:
        """What the graph of a bundle lacks of the model that it was made of."""
        return cls(
            tuple(name for name in trained.outputs if name not in inference.outputs),
            tuple(name for name in trained.input_types if name not in inference.input_types),
            _targets_left_out(trained, inference.outputs),
        )

    def as_json(self) -> dict[str, Any]:
        """What the manifest says of it."""
        return {"outputs": [*self.outputs], "inputs": [*self.inputs], "targets": [*self.targets]}


def outputs_but(graph: Graph, patterns: Collection[str]) -> list[str]:
    """The outputs of a graph that no pattern means; none where there are no patterns.

    Raises `ModgraphError` for patterns that mean nothing.
    """
    unknown = [each for each in patterns if not any(_means(each, name) for name in graph.outputs)]
    if unknown:
        names = [*graph.outputs]
        raise ModgraphError(
            UnknownOutput(model=graph.name, name=each, suggestion=_suggestion(each, names)) for each in unknown
        )
    return [name for name in graph.outputs if patterns and not any(_means(each, name) for each in patterns)]


def _means(pattern: str, name: str) -> bool:
    return pattern == name or fnmatchcase(name, pattern)


def _suggestion(name: str, known: list[str]) -> str:
    """What may have been meant: the outputs that have the name as a part of theirs, or one that is spelt alike."""
    members = [each for each in known if name in each.split(".")]
    if members:
        return "give the whole name: " + ", ".join(f"--only {each}" for each in members)
    return did_you_mean(name, known)


def _targets_left_out(trained: Graph, outputs: Iterable[str]) -> tuple[str, ...]:
    """The targets that are compared only with what none of some outputs needs."""
    needed = trained.ancestors(trained.outputs[name].node for name in outputs if name in trained.outputs)
    compared = comparisons(trained)
    kept = {each.target for each in compared if each.prediction.node in needed}
    return tuple(dict.fromkeys(each.target for each in compared if each.target not in kept))
