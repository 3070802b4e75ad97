"""Algorithms: what a training does with a spec's losses and with decisions that no gradient passes."""

from modgraph.training.algorithms.algorithm import Algorithm, Learner
from modgraph.training.algorithms.built_in import EM, Backprop, Reinforce

__all__ = ["EM", "Algorithm", "Backprop", "Learner", "Reinforce"]
