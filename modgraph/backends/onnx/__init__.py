"""Exports a model to a bundle: one ONNX file with a manifest, verified against torch."""

from modgraph.backends.onnx.bundle import Report, deterministic, export

__all__ = ["Report", "deterministic", "export"]
