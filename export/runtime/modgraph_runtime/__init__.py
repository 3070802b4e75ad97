"""Runs models that modgraph has exported: numpy and onnxruntime, nothing else."""

from modgraph_runtime.bundle import Bundle, BundleError, Port

__all__ = ["Bundle", "BundleError", "Port"]
