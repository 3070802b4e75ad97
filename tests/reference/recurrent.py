"""Recurrent layers, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.reference.call import Call, op
from tests.reference.elementwise import sigmoid
from tests.reference.layers import mapped
from tests.reference.values import Array

Step = Callable[[Array, Array, Array], tuple[Array, Array]]  # maps of x and h, and the cell, to h and the cell


def _lstm(of_x: Array, of_h: Array, cell: Array) -> tuple[Array, Array]:
    i, f, g, o = np.split(of_x + of_h, 4)
    cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell


def _gru(of_x: Array, of_h: Array, h: Array) -> tuple[Array, Array]:
    (r_x, z_x, n_x), (r_h, z_h, n_h) = np.split(of_x, 3), np.split(of_h, 3)
    z = sigmoid(z_x + z_h)
    n = np.tanh(n_x + sigmoid(r_x + r_h) * n_h)
    h = (1 - z) * n + z * h
    return h, h


STEPS: dict[str, Step] = {"lstm": _lstm, "gru": _gru}


@op(*STEPS)
def recurrent(call: Call, x: Array, *initial: Array) -> Any:
    states, cells = np.zeros((2, *x.shape[:-1], call.settings["hidden"]))
    for outer in np.ndindex(x.shape[:-2]):
        states[outer], cells[outer] = _read(call, x[outer], [state[outer] for state in initial])
    return (states, cells) if call.setting("cells", False) else states


def _read(call: Call, sequence: Array, initial: list[Array]) -> tuple[Array, Array]:
    """The state and the cell after each step, in the order of the sequence even if it is read backwards."""
    hidden = call.settings["hidden"]
    h, carried = (*initial, *(np.zeros(hidden) for _ in range(2 - len(initial))))
    carried = h if call.op == "gru" else carried
    states, cells = np.zeros((2, len(sequence), hidden))
    bias_x, bias_h = (call.weight(f"bias_{of}h") if call.setting("bias", True) else None for of in "ih")
    steps = range(len(sequence))
    for at in reversed(steps) if call.setting("reverse", False) else steps:
        of_x = mapped(sequence[at], call.weight("weight_ih"), bias_x)
        of_h = mapped(h, call.weight("weight_hh"), bias_h)
        h, carried = STEPS[call.op](of_x, of_h, carried)
        states[at], cells[at] = h, carried
    return states, cells
