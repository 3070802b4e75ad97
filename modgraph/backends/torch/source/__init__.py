"""A model's torch stage as text: one file of PyTorch that computes the same."""

from modgraph.backends.torch.source.model import verify_source, write_source
