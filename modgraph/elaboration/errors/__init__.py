"""Messages about what a spec means (MG2xx names and arguments, MG3xx types and shapes, MG4xx warnings)."""

from modgraph.elaboration.errors.cautions import *
from modgraph.elaboration.errors.names import *
from modgraph.elaboration.errors.routers import *
from modgraph.elaboration.errors.values import *
