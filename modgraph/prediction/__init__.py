"""Predictions: files in, names of classes and probabilities out, by a run in torch or by a bundle without it."""
