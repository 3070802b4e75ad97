"""Algorithms: what a training does with a spec's losses and with decisions that no gradient passes."""

from modgraph.training.algorithms.algorithm import Algorithm, Learner
from modgraph.training.algorithms.backprop import Backprop
from modgraph.training.algorithms.em import EM
from modgraph.training.algorithms.reinforce import Reinforce

__all__ = ["EM", "Algorithm", "Backprop", "Learner", "Reinforce"]
