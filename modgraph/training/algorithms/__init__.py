"""Algorithms: what a training does with a spec's losses and with decisions that no gradient passes."""

from modgraph.training.algorithms.algorithm import EM, Algorithm, Backprop, Learner, Reinforce
