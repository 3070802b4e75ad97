"""What two architectures differ in, and what that means for costs and trained weights. Needs no torch."""

from modgraph.inspect.diff.compare import applied, compare
from modgraph.inspect.diff.comparison import Comparison, Fate, Side, Weight, compared, weights_after
from modgraph.inspect.diff.json_form import as_json
from modgraph.inspect.diff.text import text_of
