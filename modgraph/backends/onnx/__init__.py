"""Exports a model to a bundle: one ONNX file with a manifest, verified against torch."""

from modgraph.backends.onnx.bundle import Report, deterministic, export, exportable
from modgraph.backends.onnx.int8_change import Test
from modgraph.backends.onnx.manifest import hash_of_weights
