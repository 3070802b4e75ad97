"""Runs models that modgraph has exported: numpy and onnxruntime, nothing else."""

from modgraph_runtime.bundle import Bundle
from modgraph_runtime.ports import BundleError, Port

__all__ = ["Bundle", "BundleError", "Port"]
