"""What a graph becomes: a torch module, an ONNX bundle."""
