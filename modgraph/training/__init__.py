"""Recipes, the training engine, and the runs that it writes."""
