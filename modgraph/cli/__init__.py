"""The command line."""

from modgraph.cli.main import main
