"""Steps that give what is the same for every example: parameters, constants, and what is computed of them alone."""

from __future__ import annotations

from typing import Any

from modgraph.backends.torch.run import Once, Step
from modgraph.ir import Result
from modgraph.nn import Constant, Parameter


def computing(compute: Any) -> Any:
    """The module that computes, of a parameter that is taken bare too."""
    return getattr(compute, "__self__", compute)


def is_array(step: Step) -> bool:
    """Whether a step gives what is the same for every example."""
    return isinstance(computing(step.compute), Parameter | Constant | Once)


def told(step: Step) -> tuple[Result, ...]:
    """The operands whose numbers a step reads: of one that is only there to tell for how many, none."""
    if isinstance(computing(step.compute), Parameter | Constant):
        return ()
    return step.operands[1:] if isinstance(step.compute, Once) else step.operands
