"""What a declaration is: settings, operands, results and weights, said once, and registries of all."""

from modgraph.declare.along import axis_setting, position_of
from modgraph.declare.declaration import Declaration, Operand, TorchModule, check_one_kind, own_module, tokens
from modgraph.declare.record import CHOSEN, DISTRIBUTION, RANKING, ROLES, Record, Role, record_as
from modgraph.declare.registry import Registered, Registry, load_extensions
from modgraph.declare.setting import MISSING, Configurable, Setting, setting
from modgraph.declare.signature import Signature, product, sizes
from modgraph.declare.weight import ONES, ZEROS, Initial, Weight, constant, normal, uniform
from modgraph.declare.words import shown_briefly, shown_value

__all__ = [
    "CHOSEN",
    "DISTRIBUTION",
    "MISSING",
    "ONES",
    "RANKING",
    "ROLES",
    "ZEROS",
    "Configurable",
    "Declaration",
    "Initial",
    "Operand",
    "Record",
    "Registered",
    "Registry",
    "Role",
    "Setting",
    "Signature",
    "TorchModule",
    "Weight",
    "axis_setting",
    "check_one_kind",
    "constant",
    "load_extensions",
    "normal",
    "own_module",
    "position_of",
    "product",
    "record_as",
    "setting",
    "shown_briefly",
    "shown_value",
    "sizes",
    "tokens",
    "uniform",
]
