"""What two architectures differ in, and what that means for costs and trained weights. Needs no torch."""

from modgraph.inspect.diff.apply import applied
from modgraph.inspect.diff.compare import compare
from modgraph.inspect.diff.comparison import Comparison, Side, Trained, Values, compared, without_marks
from modgraph.inspect.diff.json_form import as_json
from modgraph.inspect.diff.text import Paint, coloured, plain, text_of
from modgraph.inspect.diff.values import Added, Attribute, Changed, Diff, Doubt, Moved, Removed
from modgraph.inspect.diff.weights import Fate, Weight, weights_after

__all__ = [
    "Added",
    "Attribute",
    "Changed",
    "Comparison",
    "Diff",
    "Doubt",
    "Fate",
    "Moved",
    "Paint",
    "Removed",
    "Side",
    "Trained",
    "Values",
    "Weight",
    "applied",
    "as_json",
    "coloured",
    "compare",
    "compared",
    "plain",
    "text_of",
    "weights_after",
    "without_marks",
]
