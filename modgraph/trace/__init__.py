"""Traces: the decisions of a trained model's routers on data, as numbers, a summary and pictures."""
