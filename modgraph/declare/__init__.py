"""What a declaration is: settings, operands, results and weights, said once, and registries of all."""

from modgraph.declare.declaration import *
from modgraph.declare.record import *
from modgraph.declare.registry import *
from modgraph.declare.setting import *
from modgraph.declare.signature import *
from modgraph.declare.words import *
