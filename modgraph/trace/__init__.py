"""Traces: what the routers of a trained model do on data, as numbers, a summary and pictures."""
