"""What every op declares to read, against what its torch module reads when a place of an input changes."""

from __future__ import annotations

from random import Random

import pytest

import modgraph
from modgraph.ir import OpNode
from modgraph.ops import Op
from modgraph.ops.op import Op as Base
from tests.assault.differential.case import Case
from tests.examples import OP_EXAMPLES, ROUTER_EXAMPLES
from tests.ir.perturbed import find_wrong, list_axes
from tests.ops.test_zeros import MORE

INPUTS = "input x: float[4, 6] input z: float[4, 6] input v: float[6] input u: float[3, 4, 6]"
PLACED = "(u, z -> mean(axis=-1)) -> rotary"
TEXTS = [
    *OP_EXAMPLES.items(),
    *ROUTER_EXAMPLES.items(),
    *((each, f"model m() {{ {INPUTS} output y = {each} }}") for each in (*MORE, PLACED) if "->" in each),
]
CONSERVATIVE = {"importance", "keep_recent", "load", "next_state"}  # they read everything: results over the batch


@pytest.mark.some(90)
@pytest.mark.parametrize(("name", "text"), TEXTS, ids=[name for name, _ in TEXTS])
def test_an_op_reads_only_what_it_declares(name: str, text: str) -> None:
    case, rng = Case(modgraph.loads(text), name), Random(name)
    by_mode = any(node.op.by_chance or node.op.over_batch for node in case.graph.nodes_of(OpNode))
    for training in (True, False) if by_mode else (True,):
        wrong = [*find_wrong(case, training, [*list_axes(case)], rng)]
        assert not wrong, f"{'training' if training else 'inference'}: {wrong}"


def test_every_op_declares_what_it_reads_or_follows_its_axis_patterns() -> None:
    for name, op in Op.registry.items():
        declares = next(each for each in op.__mro__ if "indexing" in vars(each)) is not Base
        by_patterns = op.operands[0].axes != "..." and op.results != ("",)
        objective = op.objective and op.results == ("",)
        assert declares or by_patterns or objective or name in CONSERVATIVE, (
            f"{name} reads everything: declare indexing"
        )
