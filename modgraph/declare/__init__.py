"""Declarations: settings, operands, results and weights, each stated once, and registries of them."""

from modgraph.declare.declaration import Declaration, Operand, TorchModule, check_one_kind, join_ids, own_module, tokens
from modgraph.declare.record import CHOICES, DISTRIBUTION, RANKING, ROLES, Record, Role, record_as
from modgraph.declare.registry import Registered, Registry, load_extensions
from modgraph.declare.setting import MISSING, Configurable, Setting, axis_setting, position_of, positions_of, setting
from modgraph.declare.signature import (
    INITIALIZERS,
    ONES,
    ZEROS,
    Initial,
    Signature,
    Weight,
    normal,
    product,
    sizes,
    uniform,
)
from modgraph.declare.words import format_briefly, format_count, format_value
