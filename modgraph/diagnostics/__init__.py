"""Sources, places in them, and the messages that point there."""

from modgraph.diagnostics.diagnostic import *
from modgraph.diagnostics.render import *
from modgraph.diagnostics.suggest import *
