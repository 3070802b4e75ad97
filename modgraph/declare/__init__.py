"""What a declaration is: settings, operands, results and weights, said once, and registries of all."""

from modgraph.declare.declaration import Declaration, Operand, TorchModule
from modgraph.declare.registry import Registered, Registry, load_extensions
from modgraph.declare.setting import MISSING, Configurable, Setting, setting
from modgraph.declare.signature import Signature, product, sizes
from modgraph.declare.weight import ONES, ZEROS, Initial, Weight, constant, normal, uniform
from modgraph.declare.words import shown_briefly, shown_value

__all__ = [
    "MISSING",
    "ONES",
    "ZEROS",
    "Configurable",
    "Declaration",
    "Initial",
    "Operand",
    "Registered",
    "Registry",
    "Setting",
    "Signature",
    "TorchModule",
    "Weight",
    "constant",
    "load_extensions",
    "normal",
    "product",
    "setting",
    "shown_briefly",
    "shown_value",
    "sizes",
    "uniform",
]
