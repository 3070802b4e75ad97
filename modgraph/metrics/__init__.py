"""Metrics of a model, and the accumulators that sum them over batches and processes."""
