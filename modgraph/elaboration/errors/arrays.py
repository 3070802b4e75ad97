"""Messages about arrays that a spec gives, and states that a rule moves."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class NoSuchArray(Diagnostic):
    """A constant is a number, or a list of lists of numbers as long as its type says, the last axis innermost."""

    code = "MG253"
    message = "the numbers of this constant are not those of {type}: {problem}"
    help = "for example: constant c: float[2, 3] = [[1, 0, 0], [0, 1, 0]]; or one number for all places"
    example = "model m() { input x: float[2, 3] constant c: float[2, 3] = [[1, 0, 0], [0, 1]] y = x * c output y }"


class NoState(Diagnostic):
    """`next NAME = …` says what a state is after a step of training; the state is declared before, in the same body."""

    code = "MG254"
    message = '"{name}" is no state that could have a next value: it is {found}'
    help = "declare it first: state {name}: float[4] = zeros"
    example = "model m() { input x: float[4] y = x -> relu next y = x -> batch_mean output y }"


class TwoNexts(Diagnostic):
    """A state has one rule. In a block or module that is used twice it would have two."""

    code = "MG255"
    message = 'the state "{name}" has a next value already'
    help = "say once what it becomes; of a module that is used at several places, at one of them"
    example = "model m() { input x: float[4] state s: float[4] = zeros next s = s next s = 2 * s y = x + s output y }"
