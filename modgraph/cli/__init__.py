"""The command line."""

from modgraph.cli.main import main

__all__ = ["main"]
