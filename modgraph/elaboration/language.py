"""The rules of the language: what every kind of tree means, in one value."""

from __future__ import annotations

from modgraph.elaboration.apply import apply_module, apply_op
from modgraph.elaboration.blocks import apply_block
from modgraph.elaboration.entities import BlockUse, ModuleEntity, OpUse, Template
from modgraph.elaboration.expressions import EXPRESSIONS
from modgraph.elaboration.pipelines import apply_template
from modgraph.elaboration.site import Rules
from modgraph.elaboration.statements import STATEMENTS
from modgraph.elaboration.terms import callable_of

RULES = Rules(
    expressions=EXPRESSIONS,
    statements=STATEMENTS,
    applications={
        OpUse: apply_op,
        BlockUse: apply_block,
        Template: apply_template,
        ModuleEntity: apply_module,
    },
    term=callable_of,
)
