"""Targets of compilation: a torch module, an ONNX bundle."""
