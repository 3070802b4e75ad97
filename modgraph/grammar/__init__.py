"""The language itself: `modgraph.lark` and nothing else."""
