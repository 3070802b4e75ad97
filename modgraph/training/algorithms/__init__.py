"""Algorithms: how a training learns from a spec's losses, and decisions that no gradient passes."""

from modgraph.training.algorithms.algorithm import EM, Algorithm, Backprop, Learner, Reinforce
