"""Reports at once all names in a recipe that the model does not have, before it reads data."""

from __future__ import annotations

from collections.abc import Iterator

from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.ir import Graph
from modgraph.training.augment import unfit_inputs
from modgraph.training.labels import unfit_labels
from modgraph.training.loss_weights import unfit_losses
from modgraph.training.monitored import unfit_metrics
from modgraph.training.recipe import Recipe
from modgraph.training.scheduled import unfit_states


def refuse_unfit(graph: Graph, recipe: Recipe) -> None:
    """Raises `ModgraphError` with every target, loss, input or state of the recipe that the model does not have."""
    found = [each.changed(span=recipe.places.get(key)) for key, each in _unfit(graph, recipe)]
    if found:
        raise ModgraphError(found)


def _unfit(graph: Graph, recipe: Recipe) -> Iterator[tuple[str, Diagnostic]]:
    """Every mistake with its key in the recipe."""
    train = recipe.train
    for section, found in {
        "labels": unfit_labels(graph, train.labels or {}),
        "losses": unfit_losses(graph, train.losses or {}),
        "metrics": unfit_metrics(graph, train.metrics or {}),
        "augment": unfit_inputs(graph, train.augment or {}),
        "states": unfit_states(graph, train.states or {}),
    }.items():
        for key, each in found:
            yield f"train.{section}.{key}", each
