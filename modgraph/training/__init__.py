"""Recipes, data, the training engine, and the run directories it leaves."""
