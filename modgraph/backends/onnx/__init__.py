"""Exports a model to a bundle: one ONNX file with a manifest, verified against torch."""

from modgraph.backends.onnx.bundle import Report, deterministic, export
from modgraph.backends.onnx.change import Change, Test

__all__ = ["Change", "Report", "Test", "deterministic", "export"]
