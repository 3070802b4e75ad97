"""A model's torch stage as text: one file of PyTorch that computes the same."""

from modgraph.backends.torch.source.file import source_of

__all__ = ["source_of"]
