"""Continual training: tasks one after another, on a model that grows where what it has does not fit. Needs no torch."""

from modgraph.training.continual.section import Continual
