"""What a value is: its axes, its type, and the patterns that declarations match against it."""

from modgraph.types.axis import *
from modgraph.types.names import *
from modgraph.types.pattern import *
