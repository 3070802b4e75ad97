"""What two architectures differ in, and what that means for costs and trained weights. Needs no torch."""

from modgraph.inspect.diff.apply import applied
from modgraph.inspect.diff.compare import compare
from modgraph.inspect.diff.values import Added, Attribute, Changed, Diff, Doubt, Moved, Removed

__all__ = ["Added", "Attribute", "Changed", "Diff", "Doubt", "Moved", "Removed", "applied", "compare"]
