"""Gradient descent on the declared losses."""

from __future__ import annotations

from modgraph.diagnostics import ModgraphError
from modgraph.training.algorithms.algorithm import Algorithm, Given, Learner
from modgraph.training.algorithms.decisions import drawn_routes
from modgraph.training.errors import NoGradient


class Backprop(Algorithm):
    """Gradient descent on the declared losses."""

    name = "backprop"

    def learner(self, given: Given) -> Learner:
        for route in drawn_routes(given.graph):
            if not route.frozen:
                raise ModgraphError([NoGradient(router=route.router)])
        return Learner(given.graph)
